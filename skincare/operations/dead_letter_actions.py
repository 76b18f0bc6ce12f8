"""The dead-letter queue for people: look, put back, discard.

An event is put back through the outbox under its own id, so what is done already stays done; its
letter is deleted only after that has committed. A letter in which there is no event can only be
discarded, or moved back as it is with `redrive_native`.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import structlog
from django.db import transaction

from skincare.events import audit
from skincare.events.exceptions import (
    AlreadyFinished,
    AnotherEvent,
    EventTooLarge,
    StillInProgress,
)
from skincare.events.manual_actions import replay_received
from skincare.events.queue_client import open_dead_letter_queue
from skincare.operations.dead_letter_messages import (
    DeadLetterFilter,
    DeadLetterMessage,
    DeadLetterState,
    read_dead_letters,
)
from skincare.sqs.dead_letters import DeadLetterQueue, DLQMessage

if TYPE_CHECKING:
    pass

log = structlog.get_logger(__name__)

#: Called with how many dead letters were looked at, and how many there are, approximately.
Progress = Callable[[int, int], None]

EVERYTHING: Final = DeadLetterFilter()


class DeadLetterOutcome(StrEnum):
    """What was done with a dead letter, or why not. On a dry run: what would be done."""

    REDRIVEN = "redriven"  # in the outbox again, and gone from the dead-letter queue
    DISCARDED = "discarded"  # gone
    NOT_DELETED = "not deleted"  # SQS did not delete it; a repeat does no harm
    ALREADY_PROCESSED = "already processed"  # left alone; force redrives it
    IN_PROGRESS = "in progress"  # left alone: a worker holds the event
    CONFLICT = "conflict"  # left alone: its id belongs to another event
    NOT_AN_EVENT = "not an event"  # left alone: it can be discarded, or moved natively
    TOO_LARGE = "too large"  # left alone: the outbox does not take it; it can be moved natively


@dataclass(frozen=True, repr=False)
class Report:
    """What became of each dead letter that matched, in the order in which they were met."""

    dry_run: bool
    results: list[tuple[DeadLetterMessage, DeadLetterOutcome]] = field(default_factory=list)
    #: How many dead letters were looked at, matching or not.
    looked_at: int = 0

    def __repr__(self) -> str:
        """The counts, as a shell shows them; the messages hold what anybody may have written."""
        counts = {outcome.value: number for outcome, number in self.counts.items()}
        return f"Report(dry_run={self.dry_run}, looked_at={self.looked_at}, counts={counts})"

    @property
    def counts(self) -> Counter[DeadLetterOutcome]:
        """How many letters ended in each way."""
        return Counter(outcome for _, outcome in self.results)


def peek(
    *, limit: int | None = 1000, matching: DeadLetterFilter = EVERYTHING
) -> Iterator[DeadLetterMessage]:
    """Yield up to `limit` dead letters that match, and leave them where they are.

    They are invisible to others until the iterator ends or is closed. Raises
    `skincare.sqs.dead_letters.Unreachable` and `NoDeadLetterQueue`.
    """
    found = 0
    for dead_letters in _look(open_dead_letter_queue(), matching):
        for dead_letter in filter(matching.matches, dead_letters):
            if found == limit:
                return
            found += 1
            yield dead_letter
        if found == limit:
            return


def look_at_all(*, limit: int) -> list[DeadLetterMessage]:
    """Return up to `limit` dead letters, and leave them where they are. Raises as `peek` does.

    For a page that shows and groups them: two queries for all of them.
    """
    found: list[DLQMessage] = []
    for messages in open_dead_letter_queue().walk():
        found += messages
        if len(found) >= limit:
            break
    return read_dead_letters(found[:limit])


def redrive(
    *,
    matching: DeadLetterFilter,
    actor: str,
    force: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Put the events of matching dead letters back through the outbox, and delete the dead letters.

    An event that is finished is left alone unless `force`: then its handler runs again; what it
    did stays done once, and its email is sent again under the same Message-ID. Each event that is
    put back has an audit entry in the name of `actor`. Raises as `peek` does.
    """

    def put_back(dead_letter: DeadLetterMessage) -> DeadLetterOutcome:
        planned = plan_redrive(dead_letter, force=force)
        if planned is not DeadLetterOutcome.REDRIVEN or dry_run or dead_letter.event is None:
            return planned
        try:
            replay_received(dead_letter.event, force=force, actor=actor)
        except AlreadyFinished:
            return DeadLetterOutcome.ALREADY_PROCESSED
        except StillInProgress:
            return DeadLetterOutcome.IN_PROGRESS
        except AnotherEvent:
            return DeadLetterOutcome.CONFLICT
        except EventTooLarge:
            return DeadLetterOutcome.TOO_LARGE
        return DeadLetterOutcome.REDRIVEN

    return _settle(
        matching, put_back, ends_as=DeadLetterOutcome.REDRIVEN, dry_run=dry_run, progress=progress
    )


def plan_redrive(dead_letter: DeadLetterMessage, *, force: bool = False) -> DeadLetterOutcome:
    """Return what redriving this dead letter would do, as far as its state shows."""
    match dead_letter.state:
        case DeadLetterState.PROCESSED if not force:
            return DeadLetterOutcome.ALREADY_PROCESSED
        case DeadLetterState.IN_PROGRESS:
            return DeadLetterOutcome.IN_PROGRESS
        case DeadLetterState.CONFLICT:
            return DeadLetterOutcome.CONFLICT
        case DeadLetterState.NOT_AN_EVENT:
            return DeadLetterOutcome.NOT_AN_EVENT
    return DeadLetterOutcome.REDRIVEN


def discard(
    *,
    matching: DeadLetterFilter,
    reason: str,
    actor: str,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Delete matching messages for good. What is in the database about their events stays.

    Each has an audit entry with the `reason`, its event's document, or its body's SHA-256 where
    there is no event. Raises `ReasonMissing`, and as `peek` does.
    """
    audit.check_reason(reason)

    def drop(dead_letter: DeadLetterMessage) -> DeadLetterOutcome:
        if not dry_run:
            _note_discard(dead_letter, reason=reason, actor=actor)
        return DeadLetterOutcome.DISCARDED

    return _settle(
        matching, drop, ends_as=DeadLetterOutcome.DISCARDED, dry_run=dry_run, progress=progress
    )


def _look(queue: DeadLetterQueue, matching: DeadLetterFilter) -> Iterator[list[DeadLetterMessage]]:
    """Yield all dead letters in batches, or until all messages that the filter names were met."""
    wanted = None if matching.message_ids is None else set(matching.message_ids)
    if wanted == set():
        return
    for messages in queue.walk():
        dead_letters = read_dead_letters(messages)
        yield dead_letters
        if wanted is not None:
            wanted -= {dead_letter.message_id for dead_letter in dead_letters}
            if not wanted:
                return


def _settle(
    matching: DeadLetterFilter,
    act: Callable[[DeadLetterMessage], DeadLetterOutcome],
    *,
    ends_as: DeadLetterOutcome,
    dry_run: bool,
    progress: Progress | None,
) -> Report:
    """Do `act` with each matching letter, and delete those for which it returns `ends_as`."""
    queue = open_dead_letter_queue()
    total = queue.depth().visible
    results: list[tuple[DeadLetterMessage, DeadLetterOutcome]] = []
    looked_at = 0
    for dead_letters in _look(queue, matching):
        ended = [
            (dead_letter, act(dead_letter))
            for dead_letter in filter(matching.matches, dead_letters)
        ]
        gone = [dead_letter.message for dead_letter, outcome in ended if outcome is ends_as]
        deleted = set() if dry_run else queue.delete(gone)
        for dead_letter, outcome in ended:
            kept = outcome is ends_as and not dry_run and dead_letter.message_id not in deleted
            results.append((dead_letter, DeadLetterOutcome.NOT_DELETED if kept else outcome))
        looked_at += len(dead_letters)
        if progress is not None:
            progress(looked_at, max(total, looked_at))
    report = Report(dry_run=dry_run, results=results, looked_at=looked_at)
    log.info(
        "dead_letters_settled",
        dry_run=dry_run,
        looked_at=looked_at,
        **{outcome.name.lower(): count for outcome, count in report.counts.items()},
    )
    return report


def _note_discard(dead_letter: DeadLetterMessage, *, reason: str, actor: str) -> None:
    body = hashlib.sha256(dead_letter.body.encode("utf-8", "surrogatepass")).hexdigest()
    event = dead_letter.event
    name = f"{event.event_type} {event.event_id}" if event else dead_letter.message_id
    with transaction.atomic():
        audit.record(
            actor=actor,
            action=audit.DISCARDED,
            subject=dead_letter.processed or dead_letter.published or name,
            reason=reason,
            message_id=dead_letter.message_id,
            state=dead_letter.state.value,
            event=event.document() if event else None,
            body_sha256=body,
        )
    log.info(
        "dead_letter_discarded",
        message_id=dead_letter.message_id,
        event_id=dead_letter.event_id,
        state=dead_letter.state.value,
    )
