"""The history of one event: what happened to it, in order, with its order and its payment."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q
from django.utils.timezone import localtime

from orders.models import Order, OrderTransition, StockMovement
from orders.money import rupiah
from payments.models import Payment
from skincare.events.claim import REOPENED
from skincare.events.exceptions import UnknownEvent
from skincare.events.models import OutboxEvent, ProcessedEvent

_Status = ProcessedEvent.Status


@dataclass(frozen=True)
class HistoryEntry:
    """One thing that happened to an event. `detail` may be empty."""

    at: datetime
    what: str
    detail: str = ""


@dataclass(frozen=True)
class EventHistory:
    """What an operator wants to know about one event. Order and payment can be unknown."""

    event_id: str
    document: dict[str, Any]
    published: OutboxEvent | None
    processed: ProcessedEvent | None
    entries: list[HistoryEntry]
    order: Order | None
    payment: Payment | None

    @property
    def status(self) -> str:
        """How far the event is, in words."""
        if self.processed is not None:
            return self.processed.state_display
        if self.published is not None and self.published.sent_at is not None:
            return "sent, and not claimed by a worker yet"
        return "not sent yet"

    def __str__(self) -> str:
        lines = [f"{self.document['event_type']} {self.event_id}: {self.status}", ""]
        for entry in self.entries:
            at = localtime(entry.at).isoformat(sep=" ", timespec="seconds")
            lines.append(f"  {at}  {entry.what:28} {entry.detail}".rstrip())
        lines += ["", _order_line(self.order), _payment_line(self.payment)]
        return "\n".join(lines)


def event_history(event_id: str) -> EventHistory:
    """Return the event's history, its entries oldest first. Raises `UnknownEvent`.

    A row keeps the last try only: of several tries the first claim and the last one are shown, with
    their number.
    """
    published = OutboxEvent.objects.filter(event_id=event_id).first()
    processed = ProcessedEvent.objects.filter(event_id=event_id).first()
    row = processed or published
    if row is None:
        raise UnknownEvent(event_id)
    document = {"event_type": row.event_type, "order_id": row.order_id, **row.payload}
    entries = _sending(published) if published else []
    entries += _processing(processed) if processed else []
    entries += _by_hand([row for row in (published, processed) if row is not None])
    entries += _of_the_order(event_id)
    entries.sort(key=lambda entry: entry.at)
    order = Order.objects.filter(pk=str(document["order_id"])).first()
    payment_id = _payment_uuid(document.get("payment_id"))
    payment = Payment.objects.filter(pk=payment_id).first() if payment_id else None
    return EventHistory(event_id, document, published, processed, entries, order, payment)


def _of_the_order(event_id: str) -> list[HistoryEntry]:
    moved = OrderTransition.objects.filter(event_id=event_id)
    entries = [HistoryEntry(one.created_at, f"order {one}", one.reason) for one in moved]
    stock = StockMovement.objects.filter(event_id=event_id).select_related("product")
    entries += [
        HistoryEntry(
            one.created_at, f"stock of {one.product.sku} {one.get_kind_display()}", str(one)
        )
        for one in stock
    ]
    return entries


def _order_line(order: Order | None) -> str:
    if order is None:
        return "order: not known"
    held = f", held: {order.held_reason}" if order.is_held else ""
    return f"order: {order.number} is {order.status}, {rupiah(order.total_rupiah)}{held}"


def _payment_line(payment: Payment | None) -> str:
    if payment is None:
        return "payment: not known"
    held = f", held: {payment.held_reason}" if payment.is_held else ""
    return f"payment: {payment} is {payment.status}, {rupiah(payment.amount_rupiah)}{held}"


def _payment_uuid(text: object) -> UUID | None:
    """Return the id as that of a payment of ours; other producers name theirs as they like."""
    try:
        return UUID(str(text))
    except ValueError:
        return None


def _sending(event: OutboxEvent) -> list[HistoryEntry]:
    entries = [HistoryEntry(event.created_at, "published", "written to the outbox")]
    if event.sent_at is not None:
        tries = "" if event.send_attempts <= 1 else f"at try {event.send_attempts}"
        entries.append(HistoryEntry(event.sent_at, "sent to the queue", tries))
    elif event.send_attempts:
        entries.append(
            HistoryEntry(
                event.next_attempt_at,
                "next try to send it",
                f"{event.send_attempts} failed: {event.last_error}",
            )
        )
    else:
        entries.append(HistoryEntry(event.next_attempt_at, "waits to be sent"))
    return entries


def _processing(event: ProcessedEvent) -> list[HistoryEntry]:
    entries = [
        HistoryEntry(event.created_at, "created", "by its producer's clock"),
        HistoryEntry(event.first_claimed_at, "claimed for the first time"),
    ]
    received = f"received {event.receive_count} times, {event.worker}"
    if event.attempts > 1:
        entries.append(HistoryEntry(event.claimed_at, f"claimed, try {event.attempts}", received))
    else:
        entries[-1] = HistoryEntry(event.first_claimed_at, "claimed", received)
    if event.effects_at is not None:
        entries.append(HistoryEntry(event.effects_at, "effects done", "committed, once"))
    match event.status:
        case _Status.FAILED if event.last_error == REOPENED:
            pass  # the entry of whoever did it says more
        case _Status.FAILED if event.put_off_until:
            tries = f"{event.put_offs} times since {localtime(event.put_off_since):%d %b %H:%M}: "
            entries.append(
                HistoryEntry(event.put_off_until, "email put off until", tries + event.last_error)
            )
        case _Status.FAILED:
            entries.append(HistoryEntry(event.claimed_at, "failed", event.last_error))
        case _Status.DONE if event.finished_at:
            entries.append(
                HistoryEntry(event.finished_at, "done", "the email, if any, was accepted")
            )
        case _Status.SKIPPED if event.finished_at:
            entries.append(HistoryEntry(event.finished_at, "skipped", event.last_error))
        case _ if event.lease_expires_at:
            what = "the lease ends, or has ended"
            entries.append(HistoryEntry(event.lease_expires_at, what, f"held by {event.worker}"))
    return entries


def _by_hand(rows: list[OutboxEvent | ProcessedEvent]) -> list[HistoryEntry]:
    of_rows = Q()
    for row in rows:
        content_type = ContentType.objects.get_for_model(row)
        of_rows |= Q(content_type=content_type, object_id=str(row.pk))
    entries = LogEntry.objects.filter(of_rows).select_related("user")
    return [
        HistoryEntry(entry.action_time, f"by hand: {entry.user.get_username()}", in_words(entry))
        for entry in entries
    ]


def in_words(entry: LogEntry) -> str:
    """Return what an audit entry says, its details as words and not as JSON."""
    action, _, details = entry.change_message.partition(": ")
    try:
        named = dict(json.loads(details))
    except (ValueError, TypeError):
        return entry.get_change_message()
    words = "; ".join(
        f"{name.replace('_', ' ')}: {value}"
        for name, value in named.items()
        if value not in ("", None, [], {}) and not isinstance(value, dict)
    )
    return f"{action} ({words})" if words else action
