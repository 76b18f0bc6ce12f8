"""What an operator does with events and dead letters, from `manage.py shell`.

    >>> from payments.replay import *
    >>> dlq_list()                              # what is in the dead-letter queue, and why
    >>> dlq_show("0d5c…")                       # all about one message or event
    >>> dlq_redrive(error="timeout", dry_run=True)      # what would go back
    >>> dlq_redrive(error="timeout")                    # put it back
    >>> dlq_discard("a test of ours", message_id="…")   # delete for ever
    >>> replay("0d5c…")                         # one event that failed or got lost
    >>> replay("0d5c…", force=True)             # one that is finished; reads what it repeats
    >>> replay_failed(since="2h")               # all that failed in the last two hours
    >>> skip("0d5c…", "refunded by hand")       # never process it
    >>> print(show("0d5c…"))                    # its story, with its order and payment

An event keeps its id, so whatever is done already stays done once. Each action leaves an entry in
the admin's log; give `actor="your name"` so that it says who. The same as commands: `manage.py dlq`
and `manage.py event`.
"""

from contextlib import suppress
from datetime import datetime

from payments.letters import Letter, join
from payments.story import Story, story
from skincare.events import dead_letters, interventions
from skincare.events.dead_letters import Report
from skincare.events.exceptions import AlreadyFinished, ReasonMissing, StillInProgress, UnknownEvent
from skincare.events.interventions import Replayed
from skincare.events.letters import Filter, State
from skincare.events.models import ProcessedEvent
from skincare.events.moments import moment_since

__all__ = [
    "AlreadyFinished",
    "NothingChosen",
    "ReasonMissing",
    "Replayed",
    "StillInProgress",
    "UnknownEvent",
    "dlq_discard",
    "dlq_list",
    "dlq_redrive",
    "dlq_show",
    "replay",
    "replay_failed",
    "show",
    "skip",
]

#: Whose name the audit entries have where the caller gives none.
SHELL = "shell"


class NothingChosen(Exception):
    """Say which messages: by event_type, error, since, state or message_id, or everything=True."""


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


def replay_failed(*, since: datetime | str, actor: str = SHELL) -> list[Replayed]:
    """Put back every event whose last try failed at or after `since`.

    `since` is an aware datetime, or a text such as "30m", "2h" or "2026-11-11T00:00:00+07:00".

    For after an outage: events in the dead-letter queue are put back under their own ids, so
    moving the dead-letter queue's messages back as well does no harm. Returns what was put back;
    an event that a worker has claimed or finished in the meantime is left to it.
    """
    failed = ProcessedEvent.objects.filter(
        status=ProcessedEvent.Status.FAILED, claimed_at__gte=_moment(since)
    )
    event_ids = list(failed.order_by("claimed_at").values_list("event_id", flat=True))
    replayed = []
    for event_id in event_ids:
        with suppress(StillInProgress, AlreadyFinished):
            replayed.append(replay(event_id, actor=actor))
    return replayed


def skip(event_id: str, reason: str, *, actor: str = SHELL) -> ProcessedEvent:
    """Mark an event as skipped, so that no worker processes it any more, and say why.

    For an event that can never work and whose matter was settled by hand. What it has done stays
    done; an email that is still to come is never sent. Its message in the dead-letter queue can be
    discarded after that. `replay(event_id, force=True)` undoes it.

    Raises `ReasonMissing`, `UnknownEvent` (no worker ever claimed it), `AlreadyFinished` and
    `StillInProgress`.
    """
    return interventions.skip(event_id, reason=reason, actor=actor)


def show(event_id: str) -> Story:
    """Return all that is known of an event: its moments, its order and its payment.

    Raises `UnknownEvent`, also for an event of which no worker has ever made sense: look at
    `dlq_show` then.
    """
    return story(event_id)


def dlq_list(
    *,
    event_type: str | None = None,
    error: str | None = None,
    since: datetime | str | None = None,
    state: str | None = None,
    limit: int = 100,
) -> list[Letter]:
    """Return messages of the dead-letter queue, and leave them there.

    Give nothing to see all, or what must fit: the event type, a part of the error, "2h" or a time
    since which it was tried last, and a state: processed, failed, in-progress, never-seen,
    conflict, not-an-event. `print(*dlq_list(), sep="\\n")` is one line for each.

    While you look, a message is invisible to others for a moment; its receive count goes up, which
    does nothing there. Raises `skincare.sqs.dead_letters.Unreachable`.
    """
    matching = _filter(event_type=event_type, error=error, since=since, state=state)
    return join(dead_letters.peek(limit=limit, matching=matching))


def dlq_show(id: str) -> list[Letter]:  # noqa: A002 the operator's word
    """Return the messages with this message id or this event id; none where there is none."""
    found = [one for one in dead_letters.peek(limit=None) if id in (one.message_id, one.event_id)]
    return join(found)


def dlq_redrive(
    *,
    event_type: str | None = None,
    error: str | None = None,
    since: datetime | str | None = None,
    state: str | None = None,
    message_id: str | None = None,
    everything: bool = False,
    force: bool = False,
    dry_run: bool = False,
    actor: str = SHELL,
) -> Report:
    """Put the events of matching messages back on the queue, and take the messages away.

    Say which, as for `dlq_list`, or `message_id`, or `everything=True`. Try it with `dry_run=True`:
    the answer's `counts` say what would happen. An event that is finished is left alone, unless
    `force=True`: then its handler runs again, and its email is sent again. Messages in which there
    is no event stay: `manage.py dlq redrive --native` moves them, `dlq_discard` deletes them.

    Raises `NothingChosen` and `skincare.sqs.dead_letters.Unreachable`.
    """
    matching = _filter(
        event_type=event_type, error=error, since=since, state=state, message_id=message_id
    )
    _check_chosen(matching, everything)
    return dead_letters.redrive(matching=matching, actor=actor, force=force, dry_run=dry_run)


def dlq_discard(
    reason: str,
    *,
    event_type: str | None = None,
    error: str | None = None,
    since: datetime | str | None = None,
    state: str | None = None,
    message_id: str | None = None,
    everything: bool = False,
    dry_run: bool = False,
    actor: str = SHELL,
) -> Report:
    """Delete matching messages from the dead-letter queue for ever, and say why.

    Say which as for `dlq_redrive`. What is in the database stays; a discarded event that is stored
    there can still be put back with `replay`. Try it with `dry_run=True`.

    Raises `NothingChosen`, `ReasonMissing` and `skincare.sqs.dead_letters.Unreachable`.
    """
    matching = _filter(
        event_type=event_type, error=error, since=since, state=state, message_id=message_id
    )
    _check_chosen(matching, everything)
    return dead_letters.discard(matching=matching, reason=reason, actor=actor, dry_run=dry_run)


def _check_chosen(matching: Filter, everything: bool) -> None:
    if (matching == Filter()) is not everything:
        raise NothingChosen(NothingChosen.__doc__)


def _filter(
    *,
    event_type: str | None,
    error: str | None,
    since: datetime | str | None,
    state: str | None,
    message_id: str | None = None,
) -> Filter:
    return Filter(
        event_type=event_type,
        error=error,
        since=None if since is None else _moment(since),
        state=None if state is None else State(state),
        message_ids=None if message_id is None else frozenset({message_id}),
    )


def _moment(since: datetime | str) -> datetime:
    return moment_since(since) if isinstance(since, str) else since
