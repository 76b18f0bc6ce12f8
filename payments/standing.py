"""What all payments of an order amount to, and what state the order has to be in for it: pure.

Level, not edge: it does not matter which report or event came first, how often, or whether one got
lost. Whoever looks at the same payments comes to the same standing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from orders.status import ENDED_UNPAID, OrderStatus
from payments.status import IN_DOUBT, PAID, PaymentStatus


class Attempt(Protocol):
    """What is read of a payment. Money is whole rupiah."""

    @property
    def pk(self) -> Any: ...
    @property
    def status(self) -> str: ...
    @property
    def transaction_id(self) -> str: ...
    @property
    def amount_rupiah(self) -> int: ...
    @property
    def refunded_rupiah(self) -> int: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def paid_at(self) -> datetime | None: ...
    @property
    def expires_at(self) -> datetime | None: ...


@dataclass(frozen=True)
class Standing:
    """What the payments of an order for `total_rupiah` amount to.

    - `kept_rupiah` is the money that is in and did not go back.
    - `came_in` says whether any payment's money came in and was not reversed (refunds count as in).
    - `went_back` says whether a payment was refunded or charged back in full.
    - `in_doubt` are the payments whose money is reserved or under review: it may come any moment.
    - `open` are those that the buyer can still pay, with the moment until when (None: not known).
    - `surplus` are the payments whose money, or a part of it, is more than the order costs.
    """

    total_rupiah: int
    kept_rupiah: int
    came_in: bool
    went_back: bool
    in_doubt: tuple[Any, ...]
    open: tuple[tuple[Any, datetime | None], ...]
    surplus: tuple[Any, ...]

    @property
    def is_paid(self) -> bool:
        """Whether what is kept pays the order."""
        return self.came_in and self.kept_rupiah >= self.total_rupiah

    @property
    def surplus_rupiah(self) -> int:
        """What is kept beyond the total."""
        return max(self.kept_rupiah - self.total_rupiah, 0)

    @property
    def refunded_rupiah(self) -> int:
        """What went back of the order's total. A surplus that goes back takes nothing off it."""
        return max(self.total_rupiah - self.kept_rupiah, 0) if self.came_in else 0

    def may_expire(self, now: datetime) -> bool:
        """Whether no money is in, on its way or in doubt."""
        return (
            not self.is_paid
            and self.kept_rupiah == 0
            and not self.in_doubt
            and all(until is None or until <= now for _, until in self.open)
        )


def standing(total_rupiah: int, payments: Iterable[Attempt]) -> Standing:
    """Return what `payments` amount to for an order of `total_rupiah`."""
    attempts = list(payments)
    in_money = sorted(
        (one for one in attempts if one.status in PAID and _kept(one) > 0),
        key=lambda one: (one.paid_at or one.created_at, one.created_at),
    )
    surplus, kept = [], 0
    for one in in_money:
        if kept + _kept(one) > total_rupiah:
            surplus.append(one.pk)
        kept += _kept(one)
    return Standing(
        total_rupiah=total_rupiah,
        kept_rupiah=kept,
        came_in=any(one.status in PAID for one in attempts),
        went_back=any(one.status == PaymentStatus.REFUNDED for one in attempts),
        in_doubt=tuple(one.pk for one in attempts if one.status in IN_DOUBT),
        open=tuple(
            (one.pk, one.expires_at) for one in attempts if one.status == PaymentStatus.PENDING
        ),
        surplus=tuple(surplus),
    )


def status_of_order(
    current: OrderStatus, found: Standing, *, is_cancelled: bool, is_shipped: bool
) -> OrderStatus:
    """Return the state that an order has to be in.

    `is_cancelled`: somebody gave it up. `is_shipped`: its goods are out. An order whose money was
    taken back waits for other money, unless it is over; only the sweep ends the wait.
    """
    if found.is_paid:
        return OrderStatus.PAID
    if found.kept_rupiah > 0:
        return OrderStatus.PARTLY_REFUNDED
    if found.went_back:
        return OrderStatus.REFUNDED
    if current in ENDED_UNPAID:
        return current
    return OrderStatus.CANCELLED if is_cancelled or is_shipped else OrderStatus.PENDING


def _kept(payment: Attempt) -> int:
    return payment.amount_rupiah - payment.refunded_rupiah
