"""What a person does with one event: replay it, or mark it as skipped.

Each is gated by the event's state, keeps the event's id, and leaves an audit entry.
"""

from dataclasses import dataclass

import structlog
from django.db import transaction
from django.db.models.functions import Now

from skincare.events import audit, outbox
from skincare.events.claim import reopen, skip_event
from skincare.events.exceptions import AlreadyFinished, AnotherEvent, StillInProgress, UnknownEvent
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.schema import Event, is_same_event

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Replayed:
    """An event that goes to the queue again, and in words what will happen."""

    event_id: str
    event_type: str
    repeats: str

    def __str__(self) -> str:
        return f"{self.event_type} {self.event_id}: {self.repeats}"


def replay(event_id: str, *, force: bool = False, actor: str) -> Replayed:
    """Send a stored event to the queue again through the outbox, under the same event id.

    Raises `UnknownEvent`, `AlreadyFinished` (unless `force`) and `StillInProgress`.
    """
    with transaction.atomic():
        processed = _lock(event_id)
        event_type = processed.event_type if processed else _published_type(event_id)
        _open(event_id, processed, force=force)
        outbox.resend(event_id)
        return _replayed(event_id, event_type, processed, force=force, actor=actor)


def replay_received(event: Event, *, force: bool = False, actor: str) -> Replayed:
    """Replay an event that was found on a queue, whether or not it is stored here.

    Raises `AnotherEvent` where its id belongs to another payload, `AlreadyFinished` (unless
    `force`) and `StillInProgress`.
    """
    # Durable: the caller deletes the message next, so this must have committed.
    with transaction.atomic(durable=True):
        processed = _lock(event.event_id)
        published = OutboxEvent.objects.filter(event_id=event.event_id).first()
        if is_another(event, processed, published):
            raise AnotherEvent(event.event_id)
        _open(event.event_id, processed, force=force)
        if processed is None and published is None:
            outbox.publish(event)
        else:
            outbox.resend(event.event_id)
        return _replayed(event.event_id, event.event_type, processed, force=force, actor=actor)


def skip(event_id: str, *, reason: str, actor: str) -> ProcessedEvent:
    """Mark an event as skipped: no worker processes it any more, whatever lies on the queue.

    What it has done stays done; an email that is still to come is never sent. Raises
    `ReasonMissing`, `UnknownEvent`, `AlreadyFinished` and `StillInProgress`.
    """
    audit.check_reason(reason)
    with transaction.atomic():
        processed = skip_event(event_id, f"skipped by hand: {reason}")
        audit.record(actor=actor, action="skipped", subject=processed, reason=reason)
    log.info("event_skipped_by_hand", event_id=event_id, event_type=processed.event_type)
    return processed


def is_leased(processed: ProcessedEvent) -> bool:
    """Whether a worker may be processing the event at this moment, by the database's clock."""
    return (
        ProcessedEvent.objects.filter(pk=processed.pk, lease_expires_at__gt=Now())
        .exclude(status=ProcessedEvent.Status.FAILED)
        .exists()
    )


def is_another(
    event: Event, processed: ProcessedEvent | None, published: OutboxEvent | None
) -> bool:
    """Whether the id of `event` belongs to an event with another payload."""
    stored = processed or published
    return stored is not None and not is_same_event(event, stored.payload)


def repeats(processed: ProcessedEvent | None) -> str:
    """Say in words what another processing of the event does."""
    if processed is None:
        return "it was never processed: effects and email happen now"
    if processed.status == ProcessedEvent.Status.SKIPPED:
        return f"it was skipped ({processed.last_error}): its handler runs, if there is one now"
    if processed.status == ProcessedEvent.Status.DONE:
        return "its effects stay done once; its email is sent again, under the same Message-ID"
    if processed.effects_at is not None:
        return "its effects are done; its email is sent now"
    return "effects and email happen now"


def _lock(event_id: str) -> ProcessedEvent | None:
    return ProcessedEvent.objects.select_for_update().filter(event_id=event_id).first()


def _open(event_id: str, processed: ProcessedEvent | None, *, force: bool) -> None:
    """See that a worker may claim the event again, or refuse."""
    if processed is None:
        return
    if processed.is_finished:
        if not force:
            raise AlreadyFinished(
                f"{event_id} is finished; force=True would repeat it: {repeats(processed)}"
            )
        reopen(event_id)
    elif is_leased(processed):
        raise StillInProgress(f"{processed.worker} until {processed.lease_expires_at}")


def _published_type(event_id: str) -> str:
    published = OutboxEvent.objects.filter(event_id=event_id).first()
    if published is None:
        raise UnknownEvent(event_id)
    return published.event_type


def _replayed(
    event_id: str, event_type: str, processed: ProcessedEvent | None, *, force: bool, actor: str
) -> Replayed:
    replayed = Replayed(event_id, event_type, repeats(processed))
    audit.record(
        actor=actor,
        action="put back on the queue",
        subject=processed or OutboxEvent.objects.get(event_id=event_id),
        will=replayed.repeats,
        force=force,
    )
    log.info("event_replayed", event_id=event_id, event_type=event_type, force=force)
    return replayed
