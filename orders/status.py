"""The states of an order and the one table of moves between them."""

from collections.abc import Mapping
from typing import Final

from django.db import models

from orders.exceptions import TransitionRefused


class OrderStatus(models.TextChoices):
    PENDING = "pending", "waiting for payment"  # checked out; its stock is reserved
    PAID = "paid", "paid"  # its money is in; its stock is sold, or the order is held
    PARTLY_REFUNDED = "partly_refunded", "partly refunded"  # some of the money went back
    REFUNDED = "refunded", "refunded"  # all of the money went back
    CANCELLED = "cancelled", "cancelled"  # given up, or its money was lost after shipping
    EXPIRED = "expired", "expired"  # nobody paid in time; the reservation was released


#: What may follow each state. The payments say which (`payments.standing`), so money that comes
#: late pays an order that was over, and money that is taken back makes it wait again. An order that
#: ended unpaid never waits again.
TRANSITIONS: Final[Mapping[OrderStatus, frozenset[OrderStatus]]] = {
    OrderStatus.PENDING: frozenset(OrderStatus) - {OrderStatus.PENDING},
    OrderStatus.PAID: frozenset(
        {
            OrderStatus.PENDING,
            OrderStatus.PARTLY_REFUNDED,
            OrderStatus.REFUNDED,
            OrderStatus.CANCELLED,
        }
    ),
    OrderStatus.PARTLY_REFUNDED: frozenset(
        {
            OrderStatus.PENDING,
            OrderStatus.PAID,
            OrderStatus.PARTLY_REFUNDED,
            OrderStatus.REFUNDED,
            OrderStatus.CANCELLED,
        }
    ),
    OrderStatus.REFUNDED: frozenset(
        {
            OrderStatus.PENDING,
            OrderStatus.PAID,
            OrderStatus.PARTLY_REFUNDED,
            OrderStatus.CANCELLED,
        }
    ),
    OrderStatus.CANCELLED: frozenset(
        {OrderStatus.PAID, OrderStatus.PARTLY_REFUNDED, OrderStatus.REFUNDED}
    ),
    OrderStatus.EXPIRED: frozenset(
        {OrderStatus.PAID, OrderStatus.PARTLY_REFUNDED, OrderStatus.REFUNDED}
    ),
}

#: The states in which the shop keeps money of the buyer.
SETTLED: Final = frozenset({OrderStatus.PAID, OrderStatus.PARTLY_REFUNDED})

#: The states of an order that ended without money, and without its stock.
ENDED_UNPAID: Final = frozenset({OrderStatus.CANCELLED, OrderStatus.EXPIRED})


def can_become(current: OrderStatus, wanted: OrderStatus) -> bool:
    """Whether the table has this move."""
    return wanted in TRANSITIONS[current]


def next_status(current: OrderStatus, wanted: OrderStatus) -> OrderStatus:
    """Return `wanted`. Raises `TransitionRefused` where the table has no such move."""
    if not can_become(current, wanted):
        raise TransitionRefused(current, wanted)
    return wanted
