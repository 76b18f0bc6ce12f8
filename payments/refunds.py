"""How refunds add up: in any order of arrival, and never to more than was paid."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from payments.providers.base import GatewayRefund, whole_rupiah
from payments.status import PaymentStatus
from payments.transitions import Hold


@dataclass(frozen=True)
class NewRefund:
    """A refund that is not recorded yet, with its amount in whole rupiah (above 0)."""

    key: str
    amount_rupiah: int
    notified: GatewayRefund


@dataclass(frozen=True)
class RefundPlan:
    """What a notification's refunds add: nothing new where it is a repeat."""

    new: tuple[NewRefund, ...]
    total_rupiah: int
    status: PaymentStatus


def plan_refunds(
    *,
    amount_rupiah: int,
    recorded: Mapping[str, int],
    notified: Iterable[GatewayRefund],
    in_full: bool,
    most_new: int = 20,
) -> RefundPlan | Hold:
    """Decide which notified refunds are new for a payment of `amount_rupiah`.

    `recorded` has the known refunds' rupiah by key. `in_full` says that the gateway calls the
    payment fully refunded; its refunds must then add up to it. Returns `Hold` where they add up to
    something else or to more than was paid, where a known key comes with another amount or after
    its money has come back, or where more than `most_new` come at once.
    """
    amounts = dict(recorded)
    new = []
    for refund in notified:
        known = amounts.get(refund.key)
        if refund.amount is None:
            # "All of it", without a sum: what is left when it is first heard of.
            rupiah: int | None = amount_rupiah - sum(amounts.values()) if known is None else known
        else:
            rupiah = whole_rupiah(refund.amount)
        if rupiah is None:
            return Hold(f"refund {refund.key} of {refund.amount} is not whole rupiah")
        if known is not None and known != rupiah:
            return Hold(f"refund {refund.key} was {known} rupiah before, now {rupiah}")
        if known is not None or (refund.amount is None and rupiah == 0):
            continue
        if rupiah <= 0:
            return Hold(f"refund {refund.key} of {rupiah} rupiah")
        amounts[refund.key] = rupiah
        new.append(NewRefund(key=refund.key, amount_rupiah=rupiah, notified=refund))
    if len(new) > most_new:
        return Hold(f"{len(new)} refunds in one notification")
    total = sum(amounts.values())
    if total > amount_rupiah:
        return Hold(f"refunds add up to {total} of {amount_rupiah} rupiah paid")
    if in_full and total < amount_rupiah:
        return Hold(f"refunded in full, but refunds add up to {total} of {amount_rupiah} rupiah")
    if total == 0 and not new:
        return Hold("it reports refunds again whose money has come back")
    full = total == amount_rupiah
    status = PaymentStatus.REFUNDED if full else PaymentStatus.PARTLY_REFUNDED
    return RefundPlan(new=tuple(new), total_rupiah=total, status=status)
