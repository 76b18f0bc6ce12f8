"""The states of a payment, in the field's words, one set of them for all gateways."""

from typing import Final

from django.db import models


class PaymentStatus(models.TextChoices):
    PENDING = "pending", "waiting for the buyer"  # opened at checkout; nothing was paid yet
    AUTHORIZED = "authorized", "authorized"  # the card's money is reserved, not taken
    CHALLENGED = "challenged", "under fraud review"  # captured, but a person must accept or deny it
    EXPIRED = "expired", "expired"  # the buyer did not pay, or nobody captured, in time
    FAILED = "failed", "failed"  # the gateway or the bank had an error
    CAPTURED = "captured", "captured"  # the card was charged; it can still be cancelled
    CANCELLED = "cancelled", "cancelled"  # given up before settlement, or a capture was taken back
    SETTLED = "settled", "settled"  # the money is ours
    DENIED = "denied", "denied"  # refused by bank or fraud check, or a settlement was reversed
    PARTLY_REFUNDED = "partly_refunded", "partly refunded"  # some of the money went back
    REFUNDED = "refunded", "refunded"  # all of the money went back, or was charged back


#: The gateway has not decided yet.
OPEN: Final = frozenset({PaymentStatus.PENDING, PaymentStatus.AUTHORIZED, PaymentStatus.CHALLENGED})
#: The money is reserved or under review: it may come, and nobody may take it for lost.
IN_DOUBT: Final = frozenset({PaymentStatus.AUTHORIZED, PaymentStatus.CHALLENGED})
#: The buyer's money came in; refunds are counted apart.
PAID: Final = frozenset(
    {
        PaymentStatus.CAPTURED,
        PaymentStatus.SETTLED,
        PaymentStatus.PARTLY_REFUNDED,
        PaymentStatus.REFUNDED,
    }
)
#: No money came in, or all of it was reversed as if it never had.
UNPAID: Final = frozenset(
    {
        PaymentStatus.EXPIRED,
        PaymentStatus.FAILED,
        PaymentStatus.CANCELLED,
        PaymentStatus.DENIED,
    }
)
#: States that only a refund or a chargeback leads to.
REFUND: Final = frozenset({PaymentStatus.PARTLY_REFUNDED, PaymentStatus.REFUNDED})
