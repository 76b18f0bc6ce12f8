"""What a task does with an event: claim it, run its handler once, say how it ended."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Final

import structlog
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import close_old_connections, connection, transaction
from django.utils import timezone

from skincare.events.claim import Claim, Conflict, Duplicate, InProgress, claim
from skincare.events.database_sessions import is_away
from skincare.events.exceptions import (
    DependencyAway,
    InvalidEvent,
    LostClaim,
    NotificationDelayed,
    NotPrepared,
    TerminalError,
)
from skincare.events.handlers import Handler, handler_for
from skincare.events.schema import Event, parse_event
from skincare.sqs.outcome import RetryLater, Terminal, Unavailable
from skincare.telemetry import metrics

log = structlog.get_logger(__name__)

#: A lease that ends while we wait must have ended by the database's clock too.
_LEASE_MARGIN_SECONDS = 1.0
_ERROR_MAX_LENGTH = 2000  # characters kept of an error


#: Tries in a row that may end because the database went away under the handler. An event with
#: which it goes once more is to blame itself, and must not stop the queue.
_MOST_CUTS: Final = 2

#: What operators read while the database is away.
DATABASE: Final = "PostgreSQL"


class EventOutcome(StrEnum):
    """How the processing of a message ended when the message can go."""

    DONE = "done"
    SKIPPED = "skipped"
    DUPLICATE = "duplicate"
    PUT_OFF = "put off"  # the outbox sends it again, for its email or for what has to be asked


def process(
    document: Mapping[str, Any], *, receive_count: int, worker: str, resumes: int | None = None
) -> EventOutcome:
    """Process one event document, once. `resumes` is that of the `Unavailable` of the try before.

    Returns when the message may be deleted. Otherwise raises and the message stays: `Terminal`
    (straight to the dead-letter queue), `RetryLater` (another worker holds the event),
    `Unavailable` (the database is away: tried again in place, at the cost of no receive), or the
    handler's own error (another try after the backoff).
    """
    try:
        event = parse_event(document)
    except InvalidEvent as error:
        log.error("event_invalid", field=error.field, rule=error.rule, receive_count=receive_count)
        metrics.count("EventsFailed", event_type="unknown")
        raise Terminal(f"not an event: {error}") from None
    with structlog.contextvars.bound_contextvars(
        event_id=event.event_id,
        event_type=event.event_type,
        order_id=event.order_id,
        payment_id=event.payment_id,
        receive_count=receive_count,
    ):
        return _process(event, receive_count=receive_count, worker=worker, resumes=resumes)


def _process(event: Event, *, receive_count: int, worker: str, resumes: int | None) -> EventOutcome:
    abandoned, cuts = (None, 0) if resumes is None else divmod(resumes, _MOST_CUTS + 1)
    with _database_needed(resumes):
        answer = claim(event, worker=worker, receive_count=receive_count, resumes=abandoned)
    match answer:
        case Duplicate():
            log.info("event_duplicate")
            metrics.count("DuplicateEvents", event_type=_metric_type(event))
            return EventOutcome.DUPLICATE
        case Conflict():
            log.error("event_id_conflict")
            metrics.count("EventsFailed", event_type=_metric_type(event))
            raise Terminal("another event with another payload has this event_id")
        case InProgress(seconds_left):
            log.info("event_in_progress", seconds_left=round(seconds_left, 1))
            raise RetryLater(
                "another worker holds the event", after=seconds_left + _LEASE_MARGIN_SECONDS
            )
        case Claim():
            return _run_or_wait(event, answer, cuts)


def _run_or_wait(event: Event, held: Claim, cuts: int) -> EventOutcome:
    """Run the event's handler; where the database goes away under it, leave the rest to a try in
    place, which takes this claim over. `cuts` is how often that has happened in a row.
    """
    # What the next try is told: the claim, and how many have ended so.
    resumes = held.fence * (_MOST_CUTS + 1) + min(cuts + 1, _MOST_CUTS)
    if cuts < _MOST_CUTS:
        with _database_needed(resumes):
            return _run(event, held)
    try:
        return _run(event, held)
    except DatabaseError as error:
        if is_away(error):
            with _database_needed(resumes):
                _record_failure(event, held, error)
        raise


@contextmanager
def _database_needed(resumes: int | None) -> Iterator[None]:
    """Raise `Unavailable` where the database goes away, so that this is tried again in place."""
    try:
        yield
    except DatabaseError as error:
        if not is_away(error):
            raise
        log.warning("database_away", error=type(error).__name__)
        if not connection.in_atomic_block:  # a caller's transaction is not ours to end
            connection.close()
        raise Unavailable(DATABASE, resumes) from error


def _run(event: Event, held: Claim) -> EventOutcome:
    started = time.monotonic()
    handler = handler_for(event.event_type)
    try:
        if handler is None:
            held.skip("no handler for this event type")
            log.warning("event_skipped")
            return EventOutcome.SKIPPED
        _run_handler(event, handler, held)
    except LostClaim:
        log.warning("event_claim_lost", fence=held.fence)
        raise RetryLater("the claim was taken over") from None
    except (NotificationDelayed, DependencyAway) as delay:
        if _put_off(event, held, delay):
            return EventOutcome.PUT_OFF
        _record_failure(event, held, delay)
        raise
    except TerminalError as error:
        _record_failure(event, held, error)
        raise Terminal(f"{type(error).__name__}: {error}") from error
    except Exception as error:
        if not is_away(error):
            _record_failure(event, held, error)
        raise
    # By two clocks, the producer's and ours.
    latency = max((timezone.now() - event.created).total_seconds(), 0.0)
    log.info(
        "event_done",
        attempts=held.attempts,
        duration_ms=round((time.monotonic() - started) * 1000),
        latency_ms=round(latency * 1000),
    )
    metrics.record({"EventLatencySeconds": round(latency, 3)}, event_type=_metric_type(event))
    return EventOutcome.DONE


def _run_handler(event: Event, handler: Handler, held: Claim) -> None:
    found = None if held.effects_done else _prepare_and_commit(event, handler, held)
    if handler.notify is not None:
        fence: dict[str, Claim] = {"held": held} if handler.fenced else {}
        if not handler.fenced:
            held.check()  # a process that was stopped in between sends no email of another's event
        handler.notify(event, *(() if found is None else (found,)), **fence)
    held.finish()


def _prepare_and_commit(event: Event, handler: Handler, held: Claim) -> Any:
    if handler.prepare is None:
        return _commit(event, handler, held)
    if handler.prepares_on_demand:
        try:
            return _commit(event, handler, held)
        except NotPrepared:
            log.info("event_needs_preparation")
    return _commit(event, handler, held, handler.prepare(event))


def _commit(event: Event, handler: Handler, held: Claim, *prepared: Any) -> Any:
    with transaction.atomic():
        found = handler.effects(event, *prepared)
        held.commit_effects()
    return found


def _put_off(event: Event, held: Claim, delay: NotificationDelayed | DependencyAway) -> bool:
    """Leave the rest to the outbox, which sends the event again later. False once that is over."""
    spacing = delay.spacing if isinstance(delay, NotificationDelayed) else None
    until = held.put_off(_text(delay), at_least=delay.at_least, spacing=spacing)
    if until is None:
        return False
    log.info("event_put_off", attempts=held.attempts, error=str(delay), until=until.isoformat())
    if isinstance(delay, NotificationDelayed) and spacing is None:
        metrics.count("EmailsPutOff", event_type=_metric_type(event))
    return True


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_ERROR_MAX_LENGTH].replace("\x00", "")


def _metric_type(event: Event) -> str:
    """Return the event type as a dimension: what other producers invent must not be one each."""
    return event.event_type if event.is_known else "unknown"


def _record_failure(event: Event, held: Claim, error: Exception) -> None:
    """Write the error on the claim, so that the next receive may claim at once.

    Raises django.db.Error where the database is away, and `RetryLater` where it refuses: then the
    lease has to run out first, and a receive before that would be wasted.
    """
    log.warning("event_failed", attempts=held.attempts, error=type(error).__name__, exc_info=error)
    if not connection.in_atomic_block:
        close_old_connections()  # the error may be that the database has cut us off
    try:
        held.fail(_text(error))
    except LostClaim:
        log.warning("event_claim_lost", fence=held.fence)
        return
    except DatabaseError as unrecorded:
        log.warning("event_failure_not_recorded", error=type(unrecorded).__name__)
        if is_away(unrecorded):
            raise
        wait = settings.CLAIM_LEASE_SECONDS + _LEASE_MARGIN_SECONDS
        raise RetryLater("the database did not take the failure", after=wait) from error
    metrics.count("EventsFailed", event_type=_metric_type(event))
