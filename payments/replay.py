"""Sending stored events once more, from `manage.py shell`.

    >>> from payments.replay import *
    >>> replay("0d5c…")                         # one event that failed or got lost
    >>> replay("0d5c…", force=True)             # one that is finished; reads what it repeats
    >>> replay_failed(since="2h")               # all that failed in the last two hours

An event keeps its id, so whatever is done already stays done once. Each replay leaves an entry in
the audit log; give `actor="your name"` so that it says who. `manage.py event` and `manage.py dlq`
do the same, show more, and look into the dead-letter queue.
"""

from contextlib import suppress
from datetime import datetime

from skincare.events import manual_actions
from skincare.events.exceptions import AlreadyFinished, StillInProgress, UnknownEvent
from skincare.events.manual_actions import Replayed
from skincare.events.models import ProcessedEvent
from skincare.events.moments import moment_since

__all__ = [
    "AlreadyFinished",
    "Replayed",
    "StillInProgress",
    "UnknownEvent",
    "replay",
    "replay_failed",
]

#: Whose name the audit entries have where the caller gives none.
SHELL = "shell"


def replay(event_id: str, *, force: bool = False, actor: str = SHELL) -> Replayed:
    """Send one event to the queue again, through the outbox and under the same event id.

    Use it for an event that is in the dead-letter queue (its ProcessedEvent is "failed", or there
    is none), or that was published and never arrived. The answer says what will happen.

    A finished event is refused, because its message would change nothing. With `force=True` it is
    opened again: its handler runs once more. What the shop did for this event id (order, stock)
    stays done once; the email to the buyer is sent again, under the same Message-ID.

    Raises `UnknownEvent`, `AlreadyFinished` (says what force would repeat) and `StillInProgress`.
    """
    return manual_actions.replay(event_id, force=force, actor=actor)


def replay_failed(*, since: datetime | str, actor: str = SHELL) -> list[Replayed]:
    """Replay every event whose last try failed at or after `since`.

    `since` is an aware datetime, or a text such as "30m", "2h" or "2026-11-11T00:00:00+07:00".

    For after an outage: events in the dead-letter queue are sent again under their own ids, so
    moving the dead-letter queue's messages back as well does no harm. Returns what was replayed. An
    event that a worker has claimed or finished in the meantime is left to it, and one whose email
    waits for the provider is sent again by itself.
    """
    moment = moment_since(since) if isinstance(since, str) else since
    failed = ProcessedEvent.objects.filter(
        status=ProcessedEvent.Status.FAILED, put_off_until=None, claimed_at__gte=moment
    )
    replayed = []
    for event_id in list(failed.order_by("claimed_at").values_list("event_id", flat=True)):
        with suppress(StillInProgress, AlreadyFinished):
            replayed.append(replay(event_id, actor=actor))
    return replayed
