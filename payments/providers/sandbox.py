"""Payments that settle at checkout, without a gateway: the sandbox, and orders of 0 rupiah.

They speak the gateways' normal form, so that they take the way of a real settlement.
"""

from decimal import Decimal
from typing import TYPE_CHECKING

from payments.providers.base import CURRENCY, GatewayNotification, Provider
from payments.status import PaymentStatus

if TYPE_CHECKING:
    from payments.models import Payment


class Sandbox(Provider):
    """Pays everything at once. Anybody could pay with it, so never in production."""

    name = "sandbox"
    in_production = False

    def settle_at_once(self, payment: "Payment") -> GatewayNotification:
        """Return the notification that a gateway would send when `payment` settles."""
        return GatewayNotification(
            provider=payment.provider,
            identity=f"{payment.id}:settlement",
            transaction_id=str(payment.id),
            order_reference=str(payment.order_id),
            status=PaymentStatus.SETTLED,
            amount=Decimal(payment.amount_rupiah),
            currency=CURRENCY,
            occurred_at=payment.created_at,
            channel=payment.provider,
            payload={"transaction_status": "settlement"},
        )


class Free(Sandbox):
    """Pays orders of 0 rupiah. A buyer cannot choose it."""

    name = "free"
    in_production = True
