"""What an operator does with events, from `manage.py shell`.

    >>> from payments.replay import *
    >>> replay("0d5c…")                         # one event that failed or got lost
    >>> replay("0d5c…", force=True)             # one that is finished; reads what it repeats
    >>> from datetime import timedelta
    >>> from django.utils import timezone
    >>> replay_failed(since=timezone.now() - timedelta(hours=2))    # all that failed since
    >>> skip("0d5c…", "refunded by hand")       # never process it

The event keeps its id, so whatever is done already stays done once.
"""

from datetime import datetime

from skincare.events import interventions
from skincare.events.claim import StillInProgress
from skincare.events.interventions import AlreadyFinished, Replayed, UnknownEvent
from skincare.events.models import ProcessedEvent

__all__ = [
    "AlreadyFinished",
    "Replayed",
    "StillInProgress",
    "UnknownEvent",
    "replay",
    "replay_failed",
    "skip",
]

#: Whose name the audit entries have where the caller gives none.
SHELL = "shell"


def replay(event_id: str, *, force: bool = False, actor: str = SHELL) -> Replayed:
    """Put one event back on the queue, under the same event id.

    Use it for an event that is in the dead-letter queue (its ProcessedEvent is "failed", or there
    is none), or that was published and never arrived. The answer says what will happen.

    A finished event is refused, because its message would change nothing. With `force=True` it is
    opened again: its handler runs once more. What the shop did for this event id (order, stock)
    stays done once; the email to the buyer is sent again, under the same Message-ID.

    Raises `UnknownEvent`, `AlreadyFinished` (says what force would repeat) and `StillInProgress`.
    """
    return interventions.put_back(event_id, force=force, actor=actor)


def replay_failed(*, since: datetime, actor: str = SHELL) -> list[Replayed]:
    """Put back every event whose last try failed at or after `since` (an aware datetime).

    For after an outage: events in the dead-letter queue are put back under their own ids, so
    moving the dead-letter queue's messages back as well does no harm. Returns what was put back.
    """
    failed = ProcessedEvent.objects.filter(
        status=ProcessedEvent.Status.FAILED, claimed_at__gte=since
    )
    event_ids = list(failed.order_by("claimed_at").values_list("event_id", flat=True))
    return [replay(event_id, actor=actor) for event_id in event_ids]


def skip(event_id: str, reason: str, *, actor: str = SHELL) -> ProcessedEvent:
    """Mark an event as skipped, so that no worker processes it any more, and say why.

    For an event that can never work and whose matter was settled by hand. What it has done stays
    done; an email that is still to come is never sent. Its message in the dead-letter queue can be
    discarded after that. `replay(event_id, force=True)` undoes it.

    Raises `ReasonMissing`, `NotFound` (no worker ever claimed it), `Finished` and
    `StillInProgress`.
    """
    return interventions.skip(event_id, reason=reason, actor=actor)
