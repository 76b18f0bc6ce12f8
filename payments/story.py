"""One event with all that it belongs to: its moments, its order, its payment."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.timezone import localtime

from orders.models import Order, OrderTransition, StockMovement
from payments.models import Payment
from skincare.events.exceptions import UnknownEvent
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.timeline import Moment, timeline


@dataclass(frozen=True)
class Story:
    """What an operator wants to know about one event. Order and payment can be unknown."""

    event_id: str
    document: dict[str, Any]
    published: OutboxEvent | None
    processed: ProcessedEvent | None
    moments: list[Moment]
    order: Order | None
    payment: Payment | None

    @property
    def status(self) -> str:
        """How far the event is, in words."""
        if self.processed is not None:
            return self.processed.get_status_display()
        if self.published is not None and self.published.sent_at is not None:
            return "sent, and not claimed by a worker yet"
        return "not sent yet"

    def __str__(self) -> str:
        lines = [f"{self.document['event_type']} {self.event_id}: {self.status}", ""]
        for moment in self.moments:
            at = localtime(moment.at).isoformat(sep=" ", timespec="seconds")
            lines.append(f"  {at}  {moment.what:28} {moment.detail}".rstrip())
        lines += ["", _order_line(self.order), _payment_line(self.payment)]
        return "\n".join(lines)


def story(event_id: str) -> Story:
    """Return the event's story, its moments oldest first. Raises `UnknownEvent`."""
    moments = timeline(event_id)
    published = OutboxEvent.objects.filter(event_id=event_id).first()
    processed = ProcessedEvent.objects.filter(event_id=event_id).first()
    row = processed or published
    if row is None:  # pruned at this very moment
        raise UnknownEvent(event_id)
    document = dict(row.payload)
    moments = sorted([*moments, *_of_the_order(event_id)], key=lambda moment: moment.at)
    order = Order.objects.filter(pk=str(document["order_id"])).first()
    payment_id = payment_uuid(document.get("payment_id"))
    payment = Payment.objects.filter(pk=payment_id).first() if payment_id else None
    return Story(event_id, document, published, processed, moments, order, payment)


def _of_the_order(event_id: str) -> list[Moment]:
    moved = OrderTransition.objects.filter(event_id=event_id)
    moments = [Moment(one.created_at, f"order {one}", one.reason) for one in moved]
    stock = StockMovement.objects.filter(event_id=event_id).select_related("product")
    moments += [
        Moment(one.created_at, f"stock of {one.product.sku} {one.get_kind_display()}", str(one))
        for one in stock
    ]
    return moments


def _order_line(order: Order | None) -> str:
    if order is None:
        return "order: not known"
    held = f", held: {order.held_reason}" if order.is_held else ""
    return f"order: {order.number} is {order.status}, {order.total_rupiah} rupiah{held}"


def _payment_line(payment: Payment | None) -> str:
    if payment is None:
        return "payment: not known"
    held = f", held: {payment.held_reason}" if payment.is_held else ""
    return f"payment: {payment} is {payment.status}, {payment.amount_rupiah} rupiah{held}"


def payment_uuid(text: object) -> UUID | None:
    """Return the id as that of a payment of ours; other producers name theirs as they like."""
    try:
        return UUID(str(text))
    except ValueError:
        return None
