"""The ways to pay that checkout offers, one for each enabled provider, and "free"."""

from functools import partial
from typing import Final

from django.conf import settings

from orders.models import Order
from orders.payment_methods import FREE, PaymentMethod, register
from payments.models import Payment
from payments.notifications import record
from payments.providers.sandbox import SANDBOX, settlement

#: The gateways: their payments wait for the webhook.
GATEWAYS: Final = ("midtrans", "xendit")


def register_enabled() -> None:
    """Offer the providers of `settings.PAYMENT_PROVIDERS`, and always "free"."""
    for name in (FREE, *settings.PAYMENT_PROVIDERS):
        register(method(name))


def method(name: str) -> PaymentMethod:
    """Return the payment method of one provider, or "free". Raises `KeyError`."""
    if name in (FREE, SANDBOX):
        return PaymentMethod(name=name, open=partial(settle_at_once, provider=name))
    if name in GATEWAYS:
        return PaymentMethod(name=name, open=partial(wait_for_gateway, provider=name))
    raise KeyError(name)


def wait_for_gateway(order: Order, *, provider: str) -> None:
    """Open the payment that waits for `provider` to call; inside checkout's transaction."""
    _open(order, provider)


def settle_at_once(order: Order, *, provider: str) -> None:
    """Open a payment and settle it, the way a gateway's notification would."""
    record(settlement(_open(order, provider)))


def _open(order: Order, provider: str) -> Payment:
    return Payment.objects.create(order=order, provider=provider, amount_rupiah=order.total_rupiah)
