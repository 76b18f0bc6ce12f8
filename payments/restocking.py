"""Goods have come in: orders that were paid and out of stock get theirs, the oldest first."""

import structlog
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from orders.models import Order, OrderLine, StockMovement
from orders.status import OrderStatus
from payments.alignment import align
from payments.hold_codes import HoldCode
from payments.models import Hold
from skincare.events.schema import new_event_id

log = structlog.get_logger(__name__)

#: Orders of one sweep.
_LIMIT = 500
#: The states of an order that has its goods.
_WITH_GOODS = (OrderStatus.PAID, OrderStatus.PARTLY_REFUNDED)


def serve_out_of_stock(*, limit: int = _LIMIT) -> int:
    """Bring orders that are held for want of stock to their standing; return how many are served.

    Orders whose goods are still not there take no place from those behind them. One transaction for
    each, so that one broken order cannot stop the others; an order that somebody else works on is
    left for the next sweep.
    """
    holds = Hold.objects.filter(code=HoldCode.OUT_OF_STOCK, closed_at=None).order_by("id")
    can_be_served = ~Exists(_still_lacking()) | ~Q(order__status__in=_WITH_GOODS)
    return sum(_serve(hold) for hold in list(holds.filter(can_be_served)[:limit]))


def _still_lacking() -> QuerySet[OrderLine]:
    """Return the lines of a hold's order that need more pieces than are on the shelf."""
    taken = StockMovement.objects.filter(order=OuterRef("order"), product=OuterRef("product"))
    held = (
        taken.order_by()
        .values("product")
        .annotate(pieces=Sum("reserved_delta") - Sum("stock_delta"))
    )
    lines = OrderLine.objects.filter(order=OuterRef("order")).annotate(
        lacking=F("quantity") - Coalesce(Subquery(held.values("pieces")), 0)
    )
    return lines.filter(lacking__gt=F("product__stock") - F("product__reserved"))


def _serve(hold: Hold) -> bool:
    try:
        with transaction.atomic():
            free = Order.objects.select_for_update(no_key=True, skip_locked=True)
            order = free.filter(pk=hold.order_id).first()
            if order is None:
                return False
            align(order, event_id=new_event_id("restocked", str(hold.pk)))
    except Exception:
        log.exception("restocking_failed", order_id=str(hold.order_id))
        return False
    hold.refresh_from_db(fields=["closed_at"])
    return not hold.is_open
