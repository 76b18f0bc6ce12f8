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
from functools import cache
from typing import TYPE_CHECKING, Final

import structlog
from django.conf import settings
from django.db import transaction

from skincare.events import audit
from skincare.events.exceptions import (
    AlreadyFinished,
    AnotherEvent,
    EventTooLarge,
    StillInProgress,
)
from skincare.events.interventions import put_back_received
from skincare.events.letters import DeadLetter, Filter, State, read_letters
from skincare.sqs.client import make_client
from skincare.sqs.dead_letters import DeadLetterQueue

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

log = structlog.get_logger(__name__)

#: Called with how many letters were looked at, and how many there are, approximately.
Progress = Callable[[int, int], None]

EVERYTHING: Final = Filter()


class Outcome(StrEnum):
    """What was done with a letter, or why not. On a dry run: what would be done."""

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
    """What became of each letter that matched, in the order in which they were met."""

    dry_run: bool
    results: list[tuple[DeadLetter, Outcome]] = field(default_factory=list)
    #: How many letters were looked at, matching or not.
    looked_at: int = 0

    def __repr__(self) -> str:
        """The counts, as a shell shows them; the letters hold what anybody may have written."""
        counts = {outcome.value: number for outcome, number in self.counts.items()}
        return f"Report(dry_run={self.dry_run}, looked_at={self.looked_at}, counts={counts})"

    @property
    def counts(self) -> Counter[Outcome]:
        """How many letters ended in each way."""
        return Counter(outcome for _, outcome in self.results)


def peek(*, limit: int | None = 1000, matching: Filter = EVERYTHING) -> Iterator[DeadLetter]:
    """Yield up to `limit` letters that match, and leave them where they are.

    They are invisible to others until the iterator ends or is closed. Raises
    `skincare.sqs.dead_letters.Unreachable` and `NoDeadLetterQueue`.
    """
    found = 0
    for letters in _look(open_queue(), matching):
        for letter in filter(matching.matches, letters):
            if found == limit:
                return
            found += 1
            yield letter
        if found == limit:
            return


def redrive(
    *,
    matching: Filter,
    actor: str,
    force: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Put the events of matching letters back through the outbox, and delete the letters.

    An event that is finished is left alone unless `force`: then its handler runs again; what it
    did stays done once, and its email is sent again under the same Message-ID. Each event that is
    put back has an audit entry in the name of `actor`. Raises as `peek` does.
    """

    def put_back(letter: DeadLetter) -> Outcome:
        planned = plan_redrive(letter, force=force)
        if planned is not Outcome.REDRIVEN or dry_run or letter.event is None:
            return planned
        try:
            put_back_received(letter.event, force=force, actor=actor)
        except AlreadyFinished:
            return Outcome.ALREADY_PROCESSED
        except StillInProgress:
            return Outcome.IN_PROGRESS
        except AnotherEvent:
            return Outcome.CONFLICT
        except EventTooLarge:
            return Outcome.TOO_LARGE
        return Outcome.REDRIVEN

    return _settle(matching, put_back, ends_as=Outcome.REDRIVEN, dry_run=dry_run, progress=progress)


def plan_redrive(letter: DeadLetter, *, force: bool = False) -> Outcome:
    """Return what redriving this letter would do, as far as its state tells."""
    match letter.state:
        case State.PROCESSED if not force:
            return Outcome.ALREADY_PROCESSED
        case State.IN_PROGRESS:
            return Outcome.IN_PROGRESS
        case State.CONFLICT:
            return Outcome.CONFLICT
        case State.NOT_AN_EVENT:
            return Outcome.NOT_AN_EVENT
    return Outcome.REDRIVEN


def discard(
    *,
    matching: Filter,
    reason: str,
    actor: str,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Delete matching letters for ever. What is in the database about their events stays.

    Each has an audit entry with the `reason`, its event's document, or its body's SHA-256 where
    there is no event. Raises `ReasonMissing`, and as `peek` does.
    """
    audit.check_reason(reason)

    def drop(letter: DeadLetter) -> Outcome:
        if not dry_run:
            _note_discard(letter, reason=reason, actor=actor)
        return Outcome.DISCARDED

    return _settle(matching, drop, ends_as=Outcome.DISCARDED, dry_run=dry_run, progress=progress)


def open_queue() -> DeadLetterQueue:
    """Return the dead-letter queue of the order events' queue. Raises as `peek` does."""
    return DeadLetterQueue(sqs_client(), settings.ORDER_EVENTS_QUEUE_URL)


def sqs_client() -> "SQSClient":
    """Return this process's client for looks at the queues; made once, because that is slow."""
    return _client(settings.AWS_REGION, settings.SQS_ENDPOINT_URL)


@cache
def _client(region: str, endpoint_url: str | None) -> "SQSClient":
    return make_client(region=region, endpoint_url=endpoint_url, policy=settings.SQS_POLICY)


def _look(queue: DeadLetterQueue, matching: Filter) -> Iterator[list[DeadLetter]]:
    """Yield all letters in batches, or until all messages that the filter names were met."""
    wanted = None if matching.message_ids is None else set(matching.message_ids)
    if wanted == set():
        return
    for messages in queue.walk():
        letters = read_letters(messages)
        yield letters
        if wanted is not None:
            wanted -= {letter.message_id for letter in letters}
            if not wanted:
                return


def _settle(
    matching: Filter,
    act: Callable[[DeadLetter], Outcome],
    *,
    ends_as: Outcome,
    dry_run: bool,
    progress: Progress | None,
) -> Report:
    """Do `act` with each matching letter, and delete those for which it returns `ends_as`."""
    queue = open_queue()
    total = queue.depth().visible
    results: list[tuple[DeadLetter, Outcome]] = []
    looked_at = 0
    for letters in _look(queue, matching):
        ended = [(letter, act(letter)) for letter in filter(matching.matches, letters)]
        gone = [letter.message for letter, outcome in ended if outcome is ends_as]
        deleted = set() if dry_run else queue.delete(gone)
        for letter, outcome in ended:
            kept = outcome is ends_as and not dry_run and letter.message_id not in deleted
            results.append((letter, Outcome.NOT_DELETED if kept else outcome))
        looked_at += len(letters)
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


def _note_discard(letter: DeadLetter, *, reason: str, actor: str) -> None:
    body = hashlib.sha256(letter.body.encode("utf-8", "surrogatepass")).hexdigest()
    with transaction.atomic():
        audit.record(
            actor=actor,
            action="discarded from the dead-letter queue",
            subject=letter.processed or letter.published,
            name=f"{letter.event_type} {letter.event_id}" if letter.event else letter.message_id,
            reason=reason,
            message_id=letter.message_id,
            state=letter.state.value,
            event=letter.event.document() if letter.event else None,
            body_sha256=body,
        )
    log.info(
        "dead_letter_discarded",
        message_id=letter.message_id,
        event_id=letter.event_id,
        state=letter.state.value,
    )
