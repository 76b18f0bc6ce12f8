"""The one service in which everything about money ends: it brings an order to its standing.

Payment events, sweeps, decisions of persons and reconciliation with the gateways all lock the order
and call `align`. It reads what the payments amount to and brings the order and its stock there, so
that no order of arrival, no repeat and no lost event can leave them apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orders import lifecycle
from orders.models import Order
from orders.status import OrderStatus
from payments.hold_codes import Decision, HoldCode
from payments.holds import close_hold, open_hold, open_holds
from payments.models import Hold, Payment, PaymentRefund
from payments.standing import Standing, standing, status_of_order
from skincare.telemetry import metrics

#: Holds that are about money which is in: when it is gone, so is their cause.
_ENDED_WITH_THE_MONEY: Final = frozenset(
    {
        HoldCode.SURPLUS,
        HoldCode.PAID_AFTER_REFUND,
        HoldCode.PAID_AFTER_CANCEL,
        HoldCode.TRANSFER_BY_HAND,
    }
)


@dataclass(frozen=True)
class Aligned:
    """What an order stands at now, and the state it had before."""

    standing: Standing
    before: OrderStatus
    after: OrderStatus


def align(
    order: Order, *, event_id: str, reason: str = "", payments: Sequence[Payment] | None = None
) -> Aligned:
    """Bring a locked order and its stock to what its payments amount to.

    `event_id` is the event, or the id of the sweep or decision, that causes it; `reason` is why,
    for a person who reads the order's history; `payments` are all of the order's, where the caller
    has them locked. What contradicts itself is held. Call it inside the
    transaction of the change; called again, it finds nothing to do.
    """
    payments = payments_of(order) if payments is None else payments
    found = standing(order.total_rupiah, payments)
    before = order.status_now
    after = status_of_order(
        before,
        found,
        is_cancelled=order.cancelled_at is not None,
        is_shipped=order.shipped_at is not None and order.returned_at is None,
    )
    shortages = lifecycle.move(
        order,
        to=after,
        event_id=event_id,
        reason=reason or _sentence(found),
        refunded_rupiah=found.refunded_rupiah,
    )
    hold_contradictions(order, found, payments)
    _hold_shortage(order, lifecycle.lacking(shortages, order) if shortages else "")
    _hold_goods(order, after)
    _close_what_is_over(order, found, after, has_shortage=bool(shortages))
    if after is OrderStatus.PAID and before is not OrderStatus.PAID:
        _count_paid(payments)
    return Aligned(found, before, after)


def payments_of(order: Order) -> list[Payment]:
    """Return the order's payments; whoever changes one has locked the order."""
    return list(Payment.objects.filter(order=order))


def hold_contradictions(order: Order, found: Standing, payments: Sequence[Payment]) -> None:
    """Hold a locked order for money that it does not need, and for money after it was given up.

    Each is held as long as it is so: nobody can close such a hold without ending its cause.
    """
    by_id = {one.pk: one for one in payments}
    for pk in found.surplus:
        _hold_once(order, HoldCode.SURPLUS, by_id[pk], f"paid twice: {_first(found, payments)}")
    if order.cancelled_at is not None and found.kept_rupiah > 0:
        last = max(
            (one for one in payments if one.kept_rupiah),
            key=lambda one: one.paid_at or one.created_at,
        )
        _hold_once(order, HoldCode.PAID_AFTER_CANCEL, last, "its money came after it was cancelled")


def _first(found: Standing, payments: Sequence[Payment]) -> str:
    first = next(one for one in payments if one.kept_rupiah and one.pk not in found.surplus)
    return f"payment {first.pk} has paid the order already"


def _hold_once(order: Order, code: HoldCode, payment: Payment | None, reason: str) -> None:
    if not Hold.objects.filter(order=order, payment=payment, code=code, closed_at=None).exists():
        open_hold(order, code, reason, payment=payment)


def _hold_shortage(order: Order, lacking: str) -> None:
    if lacking and order.cancelled_at is None:
        reason = f"paid after its reservation was given back, and out of stock: {lacking}"
        _hold_once(order, HoldCode.OUT_OF_STOCK, None, reason)


def _hold_goods(order: Order, status: OrderStatus) -> None:
    """Hold an order whose goods are out and whose money is gone; once for each time it goes."""
    is_out = order.shipped_at is not None and order.returned_at is None
    if not is_out or status in (OrderStatus.PAID, OrderStatus.PARTLY_REFUNDED):
        return
    known = Hold.objects.filter(
        order=order, code=HoldCode.GOODS_OUT, opened_at__gte=order.shipped_at
    ).exclude(closed_how=Decision.RESOLVED)
    if not known.exists():
        what = "refunded" if status is OrderStatus.REFUNDED else "reversed"
        open_hold(order, HoldCode.GOODS_OUT, f"payment {what} after shipping")


def _close_what_is_over(
    order: Order, found: Standing, status: OrderStatus, *, has_shortage: bool
) -> None:
    """Close the holds whose cause is gone: the money went back, or the stock is there."""
    if not order.is_held:
        return
    for hold in open_holds(order.pk):
        if hold.code == HoldCode.OUT_OF_STOCK and not has_shortage:
            close_hold(order, hold, how=Decision.RESOLVED, reason="nothing is lacking")
        elif hold.code == HoldCode.GOODS_OUT and status is OrderStatus.PAID:
            close_hold(order, hold, how=Decision.RESOLVED, reason="the money is in")
        elif hold.code == HoldCode.CHARGEBACK and _was_won(hold.payment):
            close_hold(order, hold, how=Decision.RESOLVED, reason="the dispute was won")
        elif hold.code == HoldCode.SURPLUS and hold.refund_decided_at and not found.surplus:
            close_hold(order, hold, how=Decision.REFUND, reason="the surplus went back")
        elif hold.payment is None or hold.payment.kept_rupiah:
            continue
        elif hold.refund_decided_at is not None:
            close_hold(order, hold, how=Decision.REFUND, reason="the money went back")
        elif hold.code in _ENDED_WITH_THE_MONEY:
            close_hold(order, hold, how=Decision.RESOLVED, reason="the money is gone")


def _was_won(payment: Payment | None) -> bool:
    """Whether all that was charged back of a payment came back."""
    if payment is None:
        return False
    reversals = payment.refunds.filter(kind=PaymentRefund.Kind.REVERSAL)
    return reversals.exists() and payment.charged_back_rupiah == 0


def _count_paid(payments: Sequence[Payment]) -> None:
    paid = next(one for one in payments if one.is_paid)
    values = {"PaymentProcessed": 1, "PaymentAmountRupiah": paid.amount_rupiah}
    metrics.record(values, provider=paid.provider)


def _sentence(found: Standing) -> str:
    if found.refunded_rupiah:
        return f"{found.refunded_rupiah} of {found.total_rupiah} rupiah refunded"
    return f"{found.kept_rupiah} of {found.total_rupiah} rupiah kept"
