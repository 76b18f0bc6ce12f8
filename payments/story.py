"""One event with all that it belongs to: its moments, its order, its payment."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from orders.models import Order, OrderTransition, StockMovement
from payments.models import Payment
from skincare.events.interventions import UnknownEvent
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
    payment_id = _uuid(document.get("payment_id"))
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


def _uuid(text: object) -> UUID | None:
    """Return the id of a payment of ours; other producers may name theirs as they like."""
    try:
        return UUID(str(text))
    except ValueError:
        return None
