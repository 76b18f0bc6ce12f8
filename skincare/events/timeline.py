"""What happened to one event, in order, out of the rows that tell of it."""

from dataclasses import dataclass
from datetime import datetime

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q

from skincare.events.claim import REOPENED
from skincare.events.exceptions import UnknownEvent
from skincare.events.models import OutboxEvent, ProcessedEvent

_Status = ProcessedEvent.Status


@dataclass(frozen=True)
class Moment:
    """One thing that happened to an event. `detail` may be empty."""

    at: datetime
    what: str
    detail: str = ""


def timeline(event_id: str) -> list[Moment]:
    """Return what is known of the event, oldest first.

    A row keeps the last try only: of several tries the first claim and the last one are shown, with
    their number. Raises `UnknownEvent`.
    """
    published = OutboxEvent.objects.filter(event_id=event_id).first()
    processed = ProcessedEvent.objects.filter(event_id=event_id).first()
    if published is None and processed is None:
        raise UnknownEvent(event_id)
    moments = _sending(published) if published else []
    moments += _processing(processed) if processed else []
    moments += _by_hand([row for row in (published, processed) if row is not None])
    return sorted(moments, key=lambda moment: moment.at)


def _sending(event: OutboxEvent) -> list[Moment]:
    moments = [Moment(event.created_at, "published", "written to the outbox")]
    if event.sent_at is not None:
        tries = "" if event.send_attempts <= 1 else f"at try {event.send_attempts}"
        moments.append(Moment(event.sent_at, "sent to the queue", tries))
    elif event.send_attempts:
        moments.append(
            Moment(
                event.next_attempt_at,
                "next try to send it",
                f"{event.send_attempts} failed: {event.last_error}",
            )
        )
    else:
        moments.append(Moment(event.next_attempt_at, "waits to be sent"))
    return moments


def _processing(event: ProcessedEvent) -> list[Moment]:
    moments = [
        Moment(event.created_at, "created", "by its producer's clock"),
        Moment(event.first_claimed_at, "claimed for the first time"),
    ]
    received = f"received {event.receive_count} times, {event.worker}"
    if event.attempts > 1:
        moments.append(Moment(event.claimed_at, f"claimed, try {event.attempts}", received))
    else:
        moments[-1] = Moment(event.first_claimed_at, "claimed", received)
    if event.effects_at is not None:
        moments.append(Moment(event.effects_at, "effects done", "committed, once"))
    match event.status:
        case _Status.FAILED if event.last_error == REOPENED:
            pass  # the entry of whoever did it says more
        case _Status.FAILED:
            moments.append(Moment(event.claimed_at, "failed", event.last_error))
        case _Status.DONE if event.finished_at:
            moments.append(Moment(event.finished_at, "done", "the email, if any, was accepted"))
        case _Status.SKIPPED if event.finished_at:
            moments.append(Moment(event.finished_at, "skipped", event.last_error))
        case _ if event.lease_expires_at:
            what = "the lease ends, or has ended"
            moments.append(Moment(event.lease_expires_at, what, f"held by {event.worker}"))
    return moments


def _by_hand(rows: list[OutboxEvent | ProcessedEvent]) -> list[Moment]:
    of_rows = Q()
    for row in rows:
        content_type = ContentType.objects.get_for_model(row)
        of_rows |= Q(content_type=content_type, object_id=str(row.pk))
    entries = LogEntry.objects.filter(of_rows).select_related("user")
    return [
        Moment(entry.action_time, f"by hand: {entry.user.get_username()}", entry.change_message)
        for entry in entries
    ]
