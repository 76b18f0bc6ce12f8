"""Goods have come in: orders that were paid and out of stock get theirs, the oldest first."""

import structlog
from django.db import transaction

from orders.models import Order
from payments.alignment import align
from payments.hold_codes import HoldCode
from payments.models import Hold
from skincare.events.schema import new_event_id

log = structlog.get_logger(__name__)

#: Orders of one sweep.
_LIMIT = 500


def serve_out_of_stock(*, limit: int = _LIMIT) -> int:
    """Bring orders that are held for want of stock to their standing; return how many are served.

    One transaction for each, so that one broken order cannot stop the others; an order that
    somebody else works on is left for the next sweep.
    """
    holds = Hold.objects.filter(code=HoldCode.OUT_OF_STOCK, closed_at=None).order_by("id")
    return sum(_serve(hold) for hold in list(holds[:limit]))


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
