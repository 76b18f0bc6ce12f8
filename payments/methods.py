"""The ways to pay that checkout offers: one for each enabled provider, and "free"."""

from functools import partial
from operator import attrgetter
from typing import Final

from django.conf import settings

from orders.models import Order
from orders.payment_methods import FREE, PaymentMethod, register
from orders.sentences import Sentence
from payments.attempts import open_attempt
from payments.notifications import record
from payments.providers import provider

_LABELS: Final[dict[str, str]] = {
    "midtrans": Sentence(
        "QRIS, e-wallet, bank transfer or card, by Midtrans",
        "QRIS, dompet digital, transfer bank, atau kartu, lewat Midtrans",
    ),
    "xendit": Sentence(
        "QRIS, e-wallet, virtual account or card, by Xendit",
        "QRIS, dompet digital, virtual account, atau kartu, lewat Xendit",
    ),
    "sandbox": Sentence("Paid at once (for tests)", "Langsung lunas (untuk percobaan)"),
}

_CARD: Final = Sentence("a card", "kartu")
#: What gateways call the ways to pay, where buyers call them otherwise.
_CHANNELS: Final[dict[str, str]] = {
    "qris": "QRIS",
    "gopay": "GoPay",
    "shopeepay": "ShopeePay",
    "dana": "DANA",
    "ovo": "OVO",
    "linkaja": "LinkAja",
    "bank_transfer": Sentence("a virtual account", "virtual account"),
    "echannel": "Mandiri Bill",
    "credit_card": _CARD,
    "card": _CARD,
    "cards": _CARD,
    "cstore": "Alfamart / Indomaret",
}


def register_enabled() -> None:
    """Offer the providers of `settings.PAYMENT_PROVIDERS`, and always "free"."""
    for name in (FREE, *settings.PAYMENT_PROVIDERS):
        register(method(name))


def method(name: str) -> PaymentMethod:
    """Return the payment method of one provider. Raises `UnknownProvider`."""
    return PaymentMethod(
        name=provider(name).name,
        open=partial(open_payment, provider_name=name),
        label=_LABELS.get(name, name),
        how_paid=how_paid,
    )


def how_paid(order: Order) -> str:
    """Return the channel of the payment that the order was paid with, as buyers know it."""
    paid = [payment for payment in order.payment_list if payment.paid_at]
    channel = min(paid, key=attrgetter("paid_at")).channel if paid else ""
    return _CHANNELS.get(channel.lower(), channel.replace("_", " "))


def open_payment(order: Order, *, provider_name: str) -> None:
    """Open the order's payment, inside checkout's transaction; settle it where no gateway is
    needed, the way a gateway's notification would.
    """
    payment = open_attempt(order, provider=provider_name, is_new_order=True)
    settlement = provider(provider_name).settle_at_once(payment)
    if settlement is not None:
        record(settlement)
