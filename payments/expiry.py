"""The end of an order that nobody paid: only where no money is in, on its way, held or in doubt."""

from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from orders import lifecycle
from orders.models import Order, OrderTransition
from orders.status import OrderStatus
from payments.alignment import align
from payments.events import publish_once
from payments.models import Payment
from payments.notifications import unasked_money
from payments.status import IN_DOUBT
from skincare.events.schema import ORDER_EXPIRED, Event, new_event_id

log = structlog.get_logger(__name__)


def expire_unpaid_orders(*, older_than: timedelta | None = None, limit: int = 100) -> int:
    """Expire up to `limit` orders whose time to pay is over; return how many.

    `older_than` counts instead of the orders' own windows where it is given. One transaction for
    each, so that one broken order cannot stop the others, whatever breaks it; an order that
    somebody else works on is left for the next sweep.
    """
    overdue = _overdue(timezone.now(), older_than)
    expired = 0
    for order_id in list(overdue.values_list("pk", flat=True)[:limit]):
        try:
            with transaction.atomic():
                free = overdue.select_for_update(no_key=True, skip_locked=True, of=("self",))
                order = free.filter(pk=order_id).first()
                expired += order is not None and expire(order)
        except Exception:
            log.exception("order_expiry_failed", order_id=str(order_id))
    return expired


def expire(order: Order) -> bool:
    """Expire a locked order whose time is over, and publish `order.expired`.

    Returns False where its payments say otherwise: then it is brought to what they say.
    """
    occurrence = (
        1
        + OrderTransition.objects.filter(order=order, to_status=OrderStatus.EXPIRED)
        .exclude(from_status=OrderStatus.EXPIRED)
        .count()
    )
    parts = (ORDER_EXPIRED, str(order.pk))
    event_id = new_event_id(*parts, str(occurrence)) if occurrence > 1 else new_event_id(*parts)
    aligned = align(order, event_id=event_id)
    now = timezone.now()
    if aligned.after is not OrderStatus.PENDING or not aligned.standing.may_expire(now):
        return False
    if order.is_held:
        return False
    lifecycle.move(order, to=OrderStatus.EXPIRED, event_id=event_id, reason="nobody paid in time")
    publish_once(
        Event(
            event_id=event_id,
            event_type=ORDER_EXPIRED,
            order_id=str(order.pk),
            payment_id="",
            user_id=order.user_id,
            amount_rupiah=order.total_rupiah,
            # Not ours: whoever makes this event again makes the same document.
            created_at=timezone.localtime(order.pay_until).isoformat(),
        )
    )
    return True


def _overdue(now: datetime, older_than: timedelta | None) -> QuerySet[Order]:
    """Return the waiting orders whose time is over, except those that wait for a decision."""
    if older_than is not None:
        is_over = Q(created_at__lt=now - older_than)
    else:
        # An order of the release before the window has none.
        is_over = Q(expires_at__lt=now) | Q(
            expires_at=None, created_at__lt=now - Order.longest_wait()
        )
    undecided = Payment.objects.filter(
        # A payment page is asked for after its end (payments.reconciliation): until then somebody
        # may have paid there, and the gateway's call is late or lost.
        Q(status__in=IN_DOUBT)
        | Q(session_id__gt="", asked_at=None)
        | Q(session_id__gt="", asked_at__lt=F("expires_at")),
        order=OuterRef("pk"),
    )
    on_its_way = unasked_money().filter(payment__order=OuterRef("pk"))
    waiting = Order.objects.filter(
        is_over, ~Exists(undecided), ~Exists(on_its_way), status=OrderStatus.PENDING
    )
    return waiting.filter(held_reason="").order_by("created_at")
