"""Moving an order: its state, and its stock with it.

What state an order has to be in, its payments say (`payments.alignment`). Here it is brought there,
inside the caller's transaction and on the order that the caller has locked; products are locked
after it. Nothing here depends on how often it is called: the second time, nothing is left to do.
"""

from collections.abc import Sequence

import structlog
from django.utils import timezone

from orders import ledger, stock
from orders.ledger import Movement
from orders.locks import lock_products
from orders.models import Order
from orders.status import OrderStatus, next_status

log = structlog.get_logger(__name__)


def move(
    order: Order, *, to: OrderStatus, event_id: str, reason: str, refunded_rupiah: int = 0
) -> Sequence[stock.Shortage]:
    """Bring a locked order to a state, and its stock to what that state holds.

    `event_id` is what causes it: an event, or the id of a sweep or decision. `refunded_rupiah` is
    all that went back of the total so far. Returns the products that the order should have and that
    are not there; the order moves all the same. Raises `TransitionRefused`.
    """
    before = order.status_now
    is_new = (before, order.refunded_rupiah) != (to, refunded_rupiah)
    if is_new:
        order.status = to if to is before else next_status(before, to)
        order.refunded_rupiah = refunded_rupiah
        if to is OrderStatus.PAID:
            order.paid_at = timezone.now()
    movements, short = _plan_stock(order)
    if is_new:
        ledger.write_order(order, movements, before=before, event_id=event_id, reason=reason)
        log.info(
            "order_moved",
            order_id=str(order.pk),
            event_id=event_id,
            from_status=before.value,
            to_status=order.status,
            held=order.is_held,
        )
    else:
        stock.apply_movements(movements, event_id=event_id, order_id=order.pk)
    return short


def bring_stock(order: Order, *, event_id: str) -> Sequence[stock.Shortage]:
    """Bring the stock of a locked order to what its state holds; return what is not there."""
    movements, short = _plan_stock(order)
    stock.apply_movements(movements, event_id=event_id, order_id=order.pk)
    return short


def _plan_stock(order: Order) -> tuple[list[Movement], list[stock.Shortage]]:
    """Return what brings the stock of a locked order to what its state holds, and what is not
    there.

    Goods that were shipped stay sold, whatever became of the money, until they come back. Products
    are locked here only where pieces are taken from the shelf: the others are the order's already.
    """
    order.line_list, holdings = stock.lines_with_holdings(order)
    wanted = {line.product_id: line.quantity for line in order.line_list}
    is_out = order.shipped_at is not None and order.returned_at is None
    target = stock.stock_of_state(wanted, OrderStatus.PAID if is_out else order.status_now)
    levels: dict[int, stock.Level] = {}
    if stock.takes_from_shelf(target, holdings):
        levels = stock.levels_of(lock_products(target))
    return stock.plan_difference(target, holdings, levels)


def lacking(shortages: Sequence[stock.Shortage], order: Order) -> str:
    """Return the sentence that says what is not there for an order."""
    skus = {line.product_id: line.sku for line in order.line_list}
    return ", ".join(
        f"{skus[one.product_id]} (wanted {one.wanted}, available {one.available})"
        for one in shortages
    )
