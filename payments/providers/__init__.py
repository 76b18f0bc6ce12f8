"""All payment providers. A new one is a module here and a line in `PROVIDERS`.

Its payment method, its webhook's route and the names that PAYMENT_PROVIDERS takes follow from that;
`tests/unit/payments/test_providers.py` names what it still lacks in the settings.
"""

from typing import Final

from payments.exceptions import UnknownProvider
from payments.providers.base import Gateway, GatewayNotification, GatewayRefund, Provider
from payments.providers.midtrans import Midtrans
from payments.providers.sandbox import Free, Sandbox
from payments.providers.xendit import Xendit

#: name → provider
PROVIDERS: Final[dict[str, Provider]] = {
    one.name: one for one in (Midtrans(), Xendit(), Sandbox(), Free())
}


def provider(name: str) -> Provider:
    """Return the provider of this name. Raises `UnknownProvider`."""
    try:
        return PROVIDERS[name]
    except KeyError:
        raise UnknownProvider(name) from None


def gateways() -> list[Gateway]:
    """Return the providers that call a webhook of ours."""
    return [one for one in PROVIDERS.values() if isinstance(one, Gateway)]


def choosable(*, in_production: bool) -> list[str]:
    """Return the names that PAYMENT_PROVIDERS may hold there."""
    return [
        one.name
        for one in PROVIDERS.values()
        if one.name != Free.name and (one.in_production or not in_production)
    ]


__all__ = [
    "PROVIDERS",
    "Gateway",
    "GatewayNotification",
    "GatewayRefund",
    "Provider",
    "choosable",
    "gateways",
    "provider",
]
