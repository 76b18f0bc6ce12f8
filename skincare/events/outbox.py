"""The outbox: an event is written in the transaction of its change, and sent later."""

import json
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from skincare.events import relay
from skincare.events.exceptions import EventTooLarge, OutsideTransaction, UnknownEvent
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.schema import Event
from skincare.events.statements import prepared_cursor
from skincare.telemetry.request_id import current_request_id

log = structlog.get_logger(__name__)


_INSERT = """
INSERT INTO events_outboxevent
    (event_id, event_type, order_id, payload, created_at, send_attempts, next_attempt_at,
     last_error)
VALUES (%s, %s, %s, %s, clock_timestamp(), 0, clock_timestamp(), '')
ON CONFLICT (event_id) DO NOTHING
"""


def publish(event: Event) -> bool:
    """Write `event` to the outbox; it is sent after the caller's transaction commits.

    Returns False where an event with this id was published before: nothing is written then.
    Raises `OutsideTransaction` and `EventTooLarge`.
    """
    if not connection.in_atomic_block:
        raise OutsideTransaction(event.event_id)
    payload = json.dumps(_with_request_id(event.document()))
    if len(payload.encode()) > settings.EVENT_MAX_BYTES:
        raise EventTooLarge(f"{event.event_id}: {len(payload.encode())} bytes")
    with prepared_cursor() as cursor:
        cursor.execute(_INSERT, [event.event_id, event.event_type, event.order_id, payload])
        is_new = cursor.rowcount == 1
    if is_new:
        transaction.on_commit(relay.wake)
    log.info(
        "event_published" if is_new else "event_published_before",
        event_id=event.event_id,
        event_type=event.event_type,
        order_id=event.order_id,
    )
    return is_new


def _with_request_id(document: dict[str, Any]) -> dict[str, Any]:
    """Add the id of the request that causes the event, for the worker's log lines.

    It is an extra key of the contract: no part of what makes two events the same.
    """
    request_id = current_request_id()
    return document if request_id is None else {"request_id": request_id, **document}


def resend(event_id: str, *, at: datetime | None = None) -> None:
    """Send a published or received event once more, under the same event id; now, or at a time.

    Raises `UnknownEvent` where neither the outbox nor the processed events know it.
    """
    with transaction.atomic():
        again = OutboxEvent.objects.filter(event_id=event_id).update(
            sent_at=None,
            send_attempts=0,
            next_attempt_at=at or Now(),
            leased_until=None,
            last_error="",
        )
        if not again:
            processed = ProcessedEvent.objects.filter(event_id=event_id).first()
            if processed is None:
                raise UnknownEvent(event_id)
            # It came from another producer, so it was never in this outbox.
            OutboxEvent.objects.create(
                event_id=processed.event_id,
                event_type=processed.event_type,
                order_id=processed.order_id,
                payload=processed.payload,
                next_attempt_at=at or Now(),
            )
        if at is None:
            transaction.on_commit(relay.wake)
