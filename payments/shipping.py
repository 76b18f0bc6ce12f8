"""Goods that go out, and that come back. Nothing is shipped without its money."""

from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.utils import timezone

from orders import lifecycle
from orders.exceptions import CannotBeShipped, NotShipped
from orders.locks import lock_order
from orders.models import Order
from payments.alignment import align
from payments.hold_codes import Decision, HoldCode
from payments.holds import close_hold, open_holds
from payments.models import PaymentNotification
from payments.status import OPEN, PaymentStatus
from skincare.events import audit
from skincare.events.moments import check_moment
from skincare.events.schema import new_event_id

log = structlog.get_logger(__name__)

_LONGEST_NUMBER = 64


def ship(
    *, order_id: UUID | str, shipped_at: datetime, tracking_number: str = "", actor: str
) -> Order:
    """Record that the goods of an order went out.

    The order is brought to its standing first: a reversal or refund that is still on its way to a
    worker stops it, also one about which its gateway was not asked yet. Raises `OrderNotFound`,
    `CannotBeShipped`, and `InvalidMoment` for a time that is not between 2000 and now.
    """
    tracking_number = tracking_number.strip()
    if len(tracking_number) > _LONGEST_NUMBER or not tracking_number.isprintable():
        raise CannotBeShipped(f"a tracking number has at most {_LONGEST_NUMBER} characters")
    check_moment(shipped_at)
    with transaction.atomic():
        order = lock_order(order_id)
        align(order, event_id=new_event_id("ship", str(order.pk)))
        _check(order, shipped_at)
        order.shipped_at = shipped_at
        order.tracking_number = tracking_number
        order.save(update_fields=["shipped_at", "tracking_number", "updated_at"])
        audit.record(
            actor=actor,
            action="shipped",
            subject=order,
            shipped_at=shipped_at.isoformat(),
            tracking_number=tracking_number,
        )
    log.info("order_shipped", order_id=str(order.pk))
    return order


def take_back(*, order_id: UUID | str, reason: str, actor: str) -> Order:
    """Record that shipped goods came back: they are on the shelf again, if the money is gone.

    Raises `OrderNotFound`, `NotShipped`, `ReasonMissing` and `UnknownActor`.
    """
    audit.check_reason(reason)
    with transaction.atomic():
        order = lock_order(order_id)
        if order.shipped_at is None or order.returned_at is not None:
            raise NotShipped(order.number)
        order.returned_at = timezone.now()
        order.save(update_fields=["returned_at", "updated_at"])
        lifecycle.bring_stock(order, event_id=new_event_id("returned", str(order.pk)))
        for hold in open_holds(order.pk):
            if hold.code == HoldCode.GOODS_OUT:
                close_hold(
                    order, hold, how=Decision.RESOLVED, reason="the goods came back", actor=actor
                )
        audit.record(actor=actor, action="goods taken back", subject=order, reason=reason)
    log.info("goods_taken_back", order_id=str(order.pk))
    return order


def _check(order: Order, shipped_at: datetime) -> None:
    if order.shipped_at is not None:
        raise CannotBeShipped(f"it was shipped at {timezone.localtime(order.shipped_at)}")
    if not order.can_be_shipped:
        raise CannotBeShipped(order.held_reason or f"it is {order.get_status_display()}")
    if _may_lose_its_money(order):
        raise CannotBeShipped("its gateway has notified that money goes back, and is being asked")
    # A form says minutes, not seconds.
    if not order.created_at - timedelta(minutes=1) <= shipped_at <= timezone.now():
        raise CannotBeShipped("the time of shipping lies between its order and now")


def _may_lose_its_money(order: Order) -> bool:
    """Whether a notification waits for its gateway's word that would take money away."""
    waiting = PaymentNotification.objects.filter(
        payment__order=order, outcome=PaymentNotification.Outcome.WAITING
    )
    harmless = [*OPEN, PaymentStatus.CAPTURED, PaymentStatus.SETTLED]
    return waiting.exclude(status__in=harmless).exists()
