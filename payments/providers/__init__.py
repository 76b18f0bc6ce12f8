"""The gateways, each turned into one normal form. `provider(name)` is the way in."""

from payments.providers.base import (
    Forged,
    GatewayNotification,
    GatewayRefund,
    Malformed,
    Provider,
)
from payments.providers.midtrans import Midtrans
from payments.providers.xendit import Xendit

_GATEWAYS: dict[str, Provider] = {gateway.name: gateway for gateway in (Midtrans(), Xendit())}


def provider(name: str) -> Provider:
    """Return the gateway of this name. Raises KeyError."""
    return _GATEWAYS[name]


__all__ = [
    "Forged",
    "GatewayNotification",
    "GatewayRefund",
    "Malformed",
    "Provider",
    "provider",
]
