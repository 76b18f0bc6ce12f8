"""What lies in the dead-letter queue, read and joined with what is known of its event."""

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Literal

from django.conf import settings

from skincare.events.exceptions import InvalidEvent
from skincare.events.manual_actions import is_another, is_leased
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.routing import ORDER_TASK, PAYMENT_TASK, adapt
from skincare.events.schema import Event, parse_event
from skincare.sqs.dead_letters import DLQMessage
from skincare.sqs.decoder import AdaptedCall, InvalidMessage, TaskCall, decode
from skincare.sqs.validation import validate

Kind = Literal["celery", "event", "sns", "raw"]

#: The tasks whose calls are taken, as `validate` wants them; their arguments are read here.
_TASKS: Final = {ORDER_TASK: object(), PAYMENT_TASK: object()}


class DeadLetterState(StrEnum):
    """What became of a dead letter's event."""

    PROCESSED = "processed"  # it is done or skipped: the message is a repeat
    FAILED = "failed"  # its last try raised, or its worker died
    IN_PROGRESS = "in-progress"  # a worker holds it at this moment
    NEVER_SEEN = "never-seen"  # no worker ever claimed it
    CONFLICT = "conflict"  # its id belongs to another event, with another payload
    NOT_AN_EVENT = "not-an-event"  # no event can be read out of it


_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMBER: Final = re.compile(r"(?<![\w-])[0-9]+(?:\.[0-9]+)*(?![\w-])")
_WORDS: Final = {
    DeadLetterState.PROCESSED: "already processed",
    DeadLetterState.IN_PROGRESS: "in progress: a worker holds it",
    DeadLetterState.NEVER_SEEN: "never seen by a worker",
    DeadLetterState.CONFLICT: "another event, with another payload, has its id",
    DeadLetterState.FAILED: "its worker died while it worked on it",
    DeadLetterState.NOT_AN_EVENT: "not an event",
}


@dataclass(frozen=True)
class DeadLetterMessage:
    """One message of the dead-letter queue.

    - `kind` is the form it travels in; "raw" where the worker takes no such form.
    - `reason` says why the worker refuses it, None where the worker would take it.
    - `state` is of its event, and `summary` says it in words, with the error.
    - `event` can be there beside a `reason`: the envelope is wrong, not what is in it.
    - `receive_count` goes on counting in the dead-letter queue, looks at it included.
    """

    message: DLQMessage
    kind: Kind
    reason: str | None
    event: Event | None
    state: DeadLetterState
    summary: str
    processed: ProcessedEvent | None
    published: OutboxEvent | None

    @property
    def message_id(self) -> str:
        return self.message.message_id

    @property
    def event_id(self) -> str:
        """The event's id; empty where there is no event."""
        return self.event.event_id if self.event else ""

    @property
    def event_type(self) -> str:
        """The event's type; empty where there is no event."""
        return self.event.event_type if self.event else ""

    @property
    def order_id(self) -> str:
        """The id of the event's order; empty where there is no event."""
        return self.event.order_id if self.event else ""

    @property
    def tries(self) -> int:
        """How often workers have tried its event."""
        return self.processed.attempts if self.processed else 0

    @property
    def error(self) -> str:
        """Why it is dead, without ids and numbers, by which equal ones are counted together."""
        processed = self.processed
        if self.state is DeadLetterState.FAILED and processed and processed.last_error:
            text = processed.last_error
        else:
            text = self.reason or _WORDS[self.state]
        first = next(iter(text.strip().splitlines()), "no error was noted")
        return _NUMBER.sub("#", _UUID.sub("…", first))[:300]

    @property
    def group(self) -> str:
        """A short name of all that have the same error and type; the same in every process."""
        what = self.event_type or self.kind
        return hashlib.sha256(f"{what}\n{self.error}".encode()).hexdigest()[:12]

    @property
    def receive_count(self) -> int:
        return self.message.receive_count

    @property
    def sent_at(self) -> datetime:
        """When it was first sent to its queue."""
        return self.message.sent_at

    @property
    def last_at(self) -> datetime:
        """When its event was last tried; when it was sent, where that is not known."""
        return self.processed.claimed_at if self.processed else self.message.sent_at

    @property
    def size_bytes(self) -> int:
        return len(self.message.body.encode("utf-8", "surrogatepass"))

    @property
    def body(self) -> str:
        """The text as it lies on the queue. Not for logs: anybody can have put anything in it."""
        return self.message.body


@dataclass(frozen=True)
class DeadLetterFilter:
    """Which letters are meant: those that fit all that is given.

    `error` is any part of the summary or the reason, in upper or lower case. `since` is compared
    with `last_at`. `state` may also be a text, such as "never-seen". A message is meant by its id
    or by how it begins. `group` is a key of `dead_letter_groups`. `order_id` is in its event.
    `any_id` is how the message's, the event's or the order's id begins.
    """

    event_type: str | None = None
    error: str | None = None
    since: datetime | None = None
    state: DeadLetterState | str | None = None
    message_ids: frozenset[str] | None = None
    event_ids: frozenset[str] | None = None
    order_id: str | None = None
    any_id: str | None = None
    group: str | None = None

    def matches(self, dead_letter: DeadLetterMessage) -> bool:
        """Whether this dead letter is meant."""
        return (
            (self.event_type is None or dead_letter.event_type == self.event_type)
            and (self.state is None or dead_letter.state == self.state)
            and (self.since is None or dead_letter.last_at >= self.since)
            and (
                self.message_ids is None
                or dead_letter.message_id in self.message_ids
                or dead_letter.message_id.startswith(tuple(self.message_ids))
            )
            and (self.event_ids is None or dead_letter.event_id in self.event_ids)
            and (self.order_id is None or dead_letter.order_id == self.order_id)
            and (
                self.any_id is None
                or any(
                    one.lower().startswith(self.any_id)
                    for one in (dead_letter.message_id, dead_letter.event_id, dead_letter.order_id)
                )
            )
            and (self.group is None or dead_letter.group == self.group)
            and (
                self.error is None
                or self.error.lower()
                in f"{dead_letter.summary}\n{dead_letter.reason or ''}".lower()
            )
        )


def read_dead_letters(messages: Iterable[DLQMessage]) -> list[DeadLetterMessage]:
    """Read messages and join them with their events' rows, with two queries for all of them."""
    readings = [(message, *_read(message.body)) for message in messages]
    ids = {event.event_id for _, _, _, event in readings if event}
    processed = {row.event_id: row for row in ProcessedEvent.objects.filter(event_id__in=ids)}
    published = {row.event_id: row for row in OutboxEvent.objects.filter(event_id__in=ids)}
    dead_letters = []
    for message, kind, reason, event in readings:
        known = processed.get(event.event_id) if event else None
        sent = published.get(event.event_id) if event else None
        state, summary = _state(event, reason, known, sent)
        dead_letters.append(
            DeadLetterMessage(message, kind, reason, event, state, summary, known, sent)
        )
    return dead_letters


def _read(body: str) -> tuple[Kind, str | None, Event | None]:
    """Return the form of a message, why a worker refuses it, and the event in it, if any."""
    adapted: list[AdaptedCall] = []

    def adapt_and_note(document: dict[str, Any]) -> AdaptedCall:
        adapted.append(adapt(document))
        return adapted[0]

    try:
        call = decode(body, adapt_and_note)
    except InvalidMessage as refused:
        return "raw", refused.reason, None
    kind: Kind = ("sns" if _is_notification(body) else "event") if adapted else "celery"
    verdict = validate(call, tasks=_TASKS, policy=settings.SQS_POLICY, now=datetime.now(UTC))
    reason = None if verdict.action != "quarantine" else verdict.reason
    try:
        event = parse_event(_document(call))
    except InvalidEvent as error:
        return kind, reason or str(error), None
    return kind, reason, event


def _document(call: TaskCall) -> dict[str, Any]:
    """Return the one argument of our tasks, the event's document."""
    arguments = [*call.args, *call.kwargs.values()]
    if len(arguments) != 1 or not isinstance(arguments[0], dict):
        raise InvalidEvent("arguments", "must be one event document")
    return arguments[0]


def _is_notification(body: str) -> bool:
    text = body.strip()
    text = text if text.startswith("{") else base64.b64decode(text).decode()
    return "Message" in json.loads(text)


def _state(
    event: Event | None,
    reason: str | None,
    processed: ProcessedEvent | None,
    published: OutboxEvent | None,
) -> tuple[DeadLetterState, str]:
    if event is None:
        return DeadLetterState.NOT_AN_EVENT, f"not an event: {reason}"
    if is_another(event, processed, published):
        return DeadLetterState.CONFLICT, "another event, with another payload, has its id"
    if processed is None:
        return DeadLetterState.NEVER_SEEN, f"never seen: {reason}" if reason else "never seen"
    if processed.is_finished:
        return DeadLetterState.PROCESSED, f"already processed: {processed.get_status_display()}"
    tries = "once" if processed.attempts == 1 else f"{processed.attempts} times"
    if processed.status == ProcessedEvent.Status.FAILED:
        return DeadLetterState.FAILED, f"failed {tries}: {processed.last_error}"
    if is_leased(processed):
        return DeadLetterState.IN_PROGRESS, f"in progress: {processed.worker} holds it"
    return DeadLetterState.FAILED, f"tried {tries}: {processed.worker} died while it worked on it"
