"""What an order can be held for, and what a person may decide about each: one table."""

from collections.abc import Mapping
from typing import Final

from django.db import models


class HoldCode(models.TextChoices):
    MONEY_DIFFERS = "money_differs", "another amount or currency"
    UNCLEAR_REPORT = "unclear_report", "the gateway's report contradicts itself or is not known"
    CONTRADICTS = "contradicts", "a state that cannot follow the payment's"
    GATEWAY_DIFFERS = "gateway_differs", "the gateway, asked, says something else"
    OTHER_ORDER = "other_order", "the transaction names another order"
    MATCHED_BY_HAND = "matched_by_hand", "a person matched it to the order"
    REFUND_DIFFERS = "refund_differs", "refunds that do not add up"
    SURPLUS = "surplus", "paid more than once"
    PAID_AFTER_REFUND = "paid_after_refund", "paid again after the money went back"
    PAID_AFTER_CANCEL = "paid_after_cancel", "paid after it was cancelled"
    CHARGEBACK = "chargeback", "charged back"
    OUT_OF_STOCK = "out_of_stock", "paid, and out of stock"
    TRANSFER_BY_HAND = "transfer_by_hand", "money that has to be transferred back by hand"
    GOODS_OUT = "goods_out", "the goods are out, and the money is not in"
    OTHER = "other", "held by an earlier release"


class Decision(models.TextChoices):
    ACCEPT = "accept", "accept the money"  # two persons
    REFUND = "refund", "refund the money"  # two persons; it is closed when the money is gone
    CANCEL = "cancel", "cancel the order"
    DISMISS = "dismiss", "dismiss"
    RESOLVED = "resolved", "resolved by itself"  # no decision: its cause went away


_REPORTED: Final = frozenset({Decision.ACCEPT, Decision.CANCEL, Decision.DISMISS})
_MONEY_IN: Final = frozenset({Decision.ACCEPT, Decision.REFUND, Decision.CANCEL, Decision.DISMISS})

#: What a hold of each kind can be decided with.
DECISIONS: Final[Mapping[HoldCode, frozenset[Decision]]] = {
    # The report is taken as the truth, or it is not.
    HoldCode.MONEY_DIFFERS: _REPORTED,
    HoldCode.UNCLEAR_REPORT: _REPORTED,
    HoldCode.CONTRADICTS: _REPORTED,
    HoldCode.MATCHED_BY_HAND: _REPORTED,
    # Nothing of it was taken. Dismissing says that the gateway's dashboard was looked at.
    HoldCode.GATEWAY_DIFFERS: frozenset({Decision.CANCEL, Decision.DISMISS}),
    # Refunds are recorded only as the gateway reports them, and no report moves two orders.
    HoldCode.OTHER_ORDER: frozenset({Decision.DISMISS}),
    HoldCode.REFUND_DIFFERS: frozenset({Decision.DISMISS}),
    # Money is in that the order does not need. Dismissing says that it was sent back by hand.
    HoldCode.SURPLUS: frozenset({Decision.ACCEPT, Decision.REFUND, Decision.DISMISS}),
    HoldCode.PAID_AFTER_REFUND: _MONEY_IN,
    HoldCode.PAID_AFTER_CANCEL: _MONEY_IN - {Decision.CANCEL},
    HoldCode.CHARGEBACK: frozenset({Decision.DISMISS, Decision.CANCEL}),
    # Dismissing takes the goods, if they are there by now. Its money goes back by cancelling it.
    HoldCode.OUT_OF_STOCK: frozenset({Decision.DISMISS, Decision.CANCEL}),
    # It ends when two persons say that it was transferred (payments.transfers).
    # Dismissing says that the money stays.
    HoldCode.TRANSFER_BY_HAND: frozenset({Decision.DISMISS}),
    HoldCode.GOODS_OUT: frozenset({Decision.DISMISS}),
    HoldCode.OTHER: frozenset({Decision.DISMISS, Decision.CANCEL}),
}

#: Decisions about money, which take two persons.
FOUR_EYES: Final = frozenset({Decision.ACCEPT, Decision.REFUND})
