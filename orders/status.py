"""The states of an order and the one table of moves between them."""

from collections.abc import Mapping
from typing import Final

from django.db import models


class OrderStatus(models.TextChoices):
    PENDING = "pending", "waiting for payment"  # checked out; its stock is reserved
    PAID = "paid", "paid"  # settled; its stock is sold, or the order is held
    PARTLY_REFUNDED = "partly_refunded", "partly refunded"  # some of the money went back
    REFUNDED = "refunded", "refunded"  # all of the money went back
    CANCELLED = "cancelled", "cancelled"  # the payment failed, or was reversed after settlement
    EXPIRED = "expired", "expired"  # nobody paid in time; the reservation was released


#: What may follow each state. A cancelled or expired order becomes paid when its settlement
#: arrives late: money received is never dropped.
TRANSITIONS: Final[Mapping[OrderStatus, frozenset[OrderStatus]]] = {
    OrderStatus.PENDING: frozenset({OrderStatus.PAID, OrderStatus.CANCELLED, OrderStatus.EXPIRED}),
    OrderStatus.PAID: frozenset(
        {OrderStatus.PARTLY_REFUNDED, OrderStatus.REFUNDED, OrderStatus.CANCELLED}
    ),
    OrderStatus.PARTLY_REFUNDED: frozenset({OrderStatus.PARTLY_REFUNDED, OrderStatus.REFUNDED}),
    OrderStatus.REFUNDED: frozenset(),
    OrderStatus.CANCELLED: frozenset({OrderStatus.PAID}),
    OrderStatus.EXPIRED: frozenset({OrderStatus.PAID}),
}

#: The states in which the shop holds money of the buyer.
SETTLED: Final = frozenset({OrderStatus.PAID, OrderStatus.PARTLY_REFUNDED})


class TransitionRefused(Exception):
    """An order cannot move from its state to the wanted one."""

    def __init__(self, current: OrderStatus, wanted: OrderStatus) -> None:
        super().__init__(f"an order that is {current} cannot become {wanted}")
        self.current = current
        self.wanted = wanted


def can_become(current: OrderStatus, wanted: OrderStatus) -> bool:
    """Whether the table has this move."""
    return wanted in TRANSITIONS[current]


def next_status(current: OrderStatus, wanted: OrderStatus) -> OrderStatus:
    """Return `wanted`. Raises `TransitionRefused` where the table has no such move."""
    if not can_become(current, wanted):
        raise TransitionRefused(current, wanted)
    return wanted
