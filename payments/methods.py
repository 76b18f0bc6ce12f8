"""The ways to pay that checkout offers: one for each enabled provider, and "free"."""

from functools import partial

from django.conf import settings

from orders.models import Order
from orders.payment_methods import FREE, PaymentMethod, register
from payments.models import Payment
from payments.notifications import record
from payments.providers import provider


def register_enabled() -> None:
    """Offer the providers of `settings.PAYMENT_PROVIDERS`, and always "free"."""
    for name in (FREE, *settings.PAYMENT_PROVIDERS):
        register(method(name))


def method(name: str) -> PaymentMethod:
    """Return the payment method of one provider. Raises `UnknownProvider`."""
    return PaymentMethod(name=provider(name).name, open=partial(open_payment, provider_name=name))


def open_payment(order: Order, *, provider_name: str) -> None:
    """Open the order's payment, inside checkout's transaction; settle it where no gateway is
    needed, the way a gateway's notification would.
    """
    payment = Payment.objects.create(
        order=order, provider=provider_name, amount_rupiah=order.total_rupiah
    )
    settlement = provider(provider_name).settle_at_once(payment)
    if settlement is not None:
        record(settlement)
