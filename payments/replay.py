"""Putting a stored event back on the queue, from `manage.py shell`.

    >>> from payments.replay import replay, replay_failed
    >>> replay("0d5c…")                         # one event that failed or got lost
    >>> replay("0d5c…", force=True)             # one that is finished; reads what it repeats
    >>> from datetime import timedelta
    >>> from django.utils import timezone
    >>> replay_failed(since=timezone.now() - timedelta(hours=2))    # all that failed since

The event keeps its id, so whatever is done already stays done once.
"""

from dataclasses import dataclass
from datetime import datetime

import structlog
from django.db import transaction
from django.db.models.functions import Now

from skincare.events import outbox
from skincare.events.claim import reopen
from skincare.events.models import OutboxEvent, ProcessedEvent

log = structlog.get_logger(__name__)


class UnknownEvent(Exception):
    """No event with this id was ever published or received here."""


class AlreadyFinished(Exception):
    """The event is finished. replay(event_id, force=True) repeats it."""

    def __init__(self, event_id: str, repeats: str) -> None:
        super().__init__(f"{event_id} is finished; force=True would repeat it: {repeats}")
        self.event_id = event_id
        self.repeats = repeats


class StillInProgress(Exception):
    """A worker holds the event; its lease must end first."""


@dataclass(frozen=True)
class Replayed:
    """An event that was put back, and in words what will happen."""

    event_id: str
    event_type: str
    repeats: str

    def __str__(self) -> str:
        return f"{self.event_type} {self.event_id}: {self.repeats}"


def replay(event_id: str, *, force: bool = False) -> Replayed:
    """Put one event back on the queue, under the same event id.

    Use it for an event that is in the dead-letter queue (its ProcessedEvent is "failed", or there
    is none), or that was published and never arrived. The answer says what will happen.

    A finished event is refused, because its message would change nothing. With `force=True` it is
    opened again: its handler runs once more. What the shop did for this event id (order, stock)
    stays done once; the email to the buyer is sent again, under the same Message-ID.

    Raises `UnknownEvent`, `AlreadyFinished` (says what force would repeat) and `StillInProgress`.
    """
    with transaction.atomic():
        processed = ProcessedEvent.objects.select_for_update().filter(event_id=event_id).first()
        event_type = processed.event_type if processed else _published_type(event_id)
        if processed is not None and processed.is_finished:
            if not force:
                raise AlreadyFinished(event_id, _repeats(processed))
            reopen(event_id)
        elif processed is not None and _is_leased(processed):
            raise StillInProgress(f"{processed.worker} until {processed.lease_expires_at}")
        outbox.resend(event_id)
    replayed = Replayed(event_id, event_type, _repeats(processed))
    log.info("event_replayed", event_id=event_id, event_type=event_type, force=force)
    return replayed


def replay_failed(*, since: datetime) -> list[Replayed]:
    """Put back every event whose last try failed at or after `since` (an aware datetime).

    For after an outage: events in the dead-letter queue are put back under their own ids, so
    moving the dead-letter queue's messages back as well does no harm. Returns what was put back.
    """
    failed = ProcessedEvent.objects.filter(
        status=ProcessedEvent.Status.FAILED, claimed_at__gte=since
    )
    event_ids = list(failed.order_by("claimed_at").values_list("event_id", flat=True))
    return [replay(event_id) for event_id in event_ids]


def _published_type(event_id: str) -> str:
    published = OutboxEvent.objects.filter(event_id=event_id).first()
    if published is None:
        raise UnknownEvent(event_id)
    return published.event_type


def _is_leased(processed: ProcessedEvent) -> bool:
    return (
        ProcessedEvent.objects.filter(pk=processed.pk, lease_expires_at__gt=Now())
        .exclude(status=ProcessedEvent.Status.FAILED)
        .exists()
    )


def _repeats(processed: ProcessedEvent | None) -> str:
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
