"""What events do to an order: paid, cancelled, refunded, held, expired.

Each function runs inside the caller's transaction and locks the order first, then its products by
primary key. Each applies an event once: `OrderTransition` remembers it, whatever it changed. The
caller has made sure that the payment really is in the state that it tells of.
"""

from datetime import timedelta
from uuid import UUID

import structlog
from django.db import DatabaseError, transaction
from django.utils import timezone

from orders import stock
from orders.exceptions import NotPaidYet, RefundExceedsTotal
from orders.locks import lock_order, lock_products
from orders.models import Order, OrderTransition
from orders.search import refresh_search
from orders.status import SETTLED, OrderStatus, can_become, next_status
from skincare.events.schema import new_event_id

log = structlog.get_logger(__name__)


def mark_paid(*, order_id: UUID | str, event_id: str) -> Order:
    """The payment settled: sell what was reserved and refresh the search.

    An order that was cancelled or expired takes its stock again; where that is gone it is paid all
    the same and held for a person. Nothing happens to an order that is paid or refunded already.
    Raises `OrderNotFound`.
    """
    order = lock_order(order_id)
    if _was_applied(order, event_id):
        return order
    if not can_become(order.status_now, OrderStatus.PAID):
        return _ignore(order, event_id, "the payment settled again")
    reason = _sell(order, event_id)
    order.paid_at = timezone.now()
    return _move(order, OrderStatus.PAID, event_id, reason=reason, held_reason=reason)


def cancel_unpaid(*, order_id: UUID | str, event_id: str, reason: str) -> Order:
    """The payment failed, or was reversed after its settlement: give the stock back.

    An order that is shipped already, or partly refunded, cannot be taken back: it is held for a
    person. Nothing happens to an order that is cancelled, expired or refunded already. Raises
    `OrderNotFound`.
    """
    order = lock_order(order_id)
    if _was_applied(order, event_id):
        return order
    if order.status_now is OrderStatus.PARTLY_REFUNDED:
        held = f"payment reversed after a partial refund: {reason}"
        return _stay(order, event_id, reason=reason, held_reason=held)
    if not can_become(order.status_now, OrderStatus.CANCELLED):
        return _ignore(order, event_id, reason)
    held = ""
    if order.shipped_at is not None:
        held = f"payment reversed after shipping: {reason}"
    else:
        _give_back(order, event_id)
    return _move(order, OrderStatus.CANCELLED, event_id, reason=reason, held_reason=held)


def record_refund(*, order_id: UUID | str, event_id: str, refunded_rupiah: int) -> Order:
    """Money went back. `refunded_rupiah` is all that was refunded so far, so order of arrival does
    not matter: a smaller total than is known changes nothing.

    A full refund before shipping returns the stock. Raises `OrderNotFound`, `NotPaidYet` and
    `RefundExceedsTotal`.
    """
    order = lock_order(order_id)
    if _was_applied(order, event_id):
        return order
    if refunded_rupiah > order.total_rupiah:
        raise RefundExceedsTotal(f"{refunded_rupiah} of {order.total_rupiah} rupiah")
    if refunded_rupiah <= order.refunded_rupiah:
        return _ignore(order, event_id, f"refunds of {refunded_rupiah} rupiah were known")
    if order.status_now not in SETTLED:
        raise NotPaidYet(f"order {order.number} is {order.status}")
    order.refunded_rupiah = refunded_rupiah
    reason = f"{refunded_rupiah} of {order.total_rupiah} rupiah refunded"
    if refunded_rupiah < order.total_rupiah:
        return _move(order, OrderStatus.PARTLY_REFUNDED, event_id, reason=reason)
    if order.shipped_at is None:
        _give_back(order, event_id)
    return _move(order, OrderStatus.REFUNDED, event_id, reason=reason)


def hold(*, order_id: UUID | str, reason: str) -> Order:
    """Put the order aside for a person, whatever its status. Raises `OrderNotFound`."""
    order = lock_order(order_id)
    _add_held_reason(order, reason)
    order.save(update_fields=["held_reason", "updated_at"])
    return order


def expire_unpaid_orders(*, older_than: timedelta, limit: int = 100) -> int:
    """Expire up to `limit` orders that nobody paid within `older_than`; return how many.

    One transaction for each, so that one broken order cannot stop the others; an order that
    somebody else works on is left for the next sweep.
    """
    overdue = Order.objects.filter(
        status=OrderStatus.PENDING, created_at__lt=timezone.now() - older_than
    ).order_by("created_at")
    expired = 0
    for order_id in list(overdue.values_list("pk", flat=True)[:limit]):
        try:
            with transaction.atomic():
                free = overdue.select_for_update(no_key=True, skip_locked=True)
                order = free.filter(pk=order_id).first()
                if order is not None:
                    _expire(order)
                    expired += 1
        except DatabaseError:
            log.exception("order_expiry_failed", order_id=str(order_id))
    return expired


def _expire(order: Order) -> None:
    event_id = new_event_id("order.expired", str(order.pk))
    _give_back(order, event_id)
    _move(order, OrderStatus.EXPIRED, event_id, reason="nobody paid in time")


def _sell(order: Order, event_id: str) -> str:
    """Move the order's stock out of the shelf. Returns why that is not possible, or nothing."""
    wanted = stock.wanted_by(order.pk)
    products = lock_products(wanted)
    holdings = stock.holdings_of(order.pk)
    outstanding = stock.outstanding(wanted, holdings)
    missing = stock.shortages(outstanding, stock.levels_of(products))
    movements = stock.plan_sell(holdings)
    if not missing:
        movements += stock.plan_retake(outstanding)
    stock.apply_movements(movements, products, event_id=event_id, order_id=order.pk)
    refresh_search(products)
    if not missing:
        return ""
    lacking = ", ".join(
        f"{products[m.product_id].sku} (wanted {m.wanted}, available {m.available})"
        for m in missing
    )
    return f"paid after its reservation was given back, and out of stock: {lacking}"


def _give_back(order: Order, event_id: str) -> None:
    """Release what the order has reserved and return what was sold to it."""
    holdings = stock.holdings_of(order.pk)
    products = lock_products(holdings)
    movements = stock.plan_release(holdings) + stock.plan_return(holdings)
    stock.apply_movements(movements, products, event_id=event_id, order_id=order.pk)
    refresh_search(products)


def _was_applied(order: Order, event_id: str) -> bool:
    return OrderTransition.objects.filter(order=order, event_id=event_id).exists()


def _move(
    order: Order, wanted: OrderStatus, event_id: str, *, reason: str, held_reason: str = ""
) -> Order:
    before = order.status_now
    order.status = next_status(before, wanted)
    return _record(order, before, event_id, reason=reason, held_reason=held_reason)


def _stay(order: Order, event_id: str, *, reason: str, held_reason: str = "") -> Order:
    return _record(order, order.status_now, event_id, reason=reason, held_reason=held_reason)


def _ignore(order: Order, event_id: str, reason: str) -> Order:
    return _stay(order, event_id, reason=f"changed nothing: {reason}")


def _record(
    order: Order, before: OrderStatus, event_id: str, *, reason: str, held_reason: str
) -> Order:
    if held_reason:
        _add_held_reason(order, held_reason)
    order.save()
    OrderTransition.objects.create(
        order=order,
        event_id=event_id,
        from_status=before,
        to_status=order.status,
        reason=reason,
    )
    log.info(
        "order_moved",
        order_id=str(order.pk),
        event_id=event_id,
        from_status=before.value,
        to_status=order.status,
        held=order.is_held,
    )
    return order


def _add_held_reason(order: Order, reason: str) -> None:
    known = order.held_reason.splitlines()
    if reason not in known:
        order.held_reason = "\n".join([*known, reason])
        log.warning("order_held", order_id=str(order.pk))
