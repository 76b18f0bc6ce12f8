"""Reading what lies on the queue: from an element of ReceiveMessage's answer to the call of a task.

Three forms of body are read: Celery's message protocol 2 as kombu writes it (plain or in base64), a
bare JSON document, and a bare document in an SNS notification. Celery never sees a message that is
not in order here, because its own answers to such messages are to delete them or to die.
"""

import base64
import json
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Never

from celery.app.task import Context

#: Levels of lists and objects in a document. Python's own limit is a property of the process: what
#: json.loads just takes, pickle on the way to the task's process may not.
MAX_NESTING = 100
MAX_ID_LENGTH = 255

#: Headers of Celery's that are not attributes of its Context too.
_CELERYS_HEADERS = frozenset({"task", "lang", "argsrepr", "kwargsrepr", "compression"})


@dataclass(slots=True)
class ReceivedMessage:
    """A message as one ReceiveMessage handed it out."""

    queue: str
    message_id: str
    receipt_handle: str
    #: How often SQS handed the message out, this time included.
    receive_count: int
    body: str
    #: `time.monotonic()` at the earliest moment at which SQS can have handed it out, and until
    #: which no other worker gets it, at the least; the latter moves when it is extended.
    received_at: float
    invisible_until: float

    @property
    def seconds_left(self) -> float:
        """Seconds for which the message is still ours."""
        return self.invisible_until - time.monotonic()

    @property
    def log_fields(self) -> dict[str, Any]:
        """What a log line says of it. Never the body."""
        return {
            "queue": self.queue,
            "sqs_message_id": self.message_id,
            "receive_count": self.receive_count,
        }


def read_received(
    message: object, *, queue: str, received_at: float, visibility_timeout: float
) -> ReceivedMessage | None:
    """Read an element of `Messages` in an answer; None where it has no receipt handle to use."""
    if not isinstance(message, Mapping):
        return None
    receipt_handle = message.get("ReceiptHandle")
    if not isinstance(receipt_handle, str) or not receipt_handle:
        return None
    body = message.get("Body")
    return ReceivedMessage(
        queue=queue,
        message_id=str(message.get("MessageId", "")),
        receipt_handle=receipt_handle,
        receive_count=_receive_count(message.get("Attributes")),
        body=body if isinstance(body, str) else "",
        received_at=received_at,
        invisible_until=received_at + visibility_timeout,
    )


def _receive_count(attributes: object) -> int:
    try:
        return max(1, int(attributes["ApproximateReceiveCount"]))  # type: ignore[index]
    except (TypeError, ValueError, KeyError, OverflowError):  # the last: 1e999
        return 1


@dataclass(eq=False)
class Incoming:
    """A message that became a task call, on its way to Celery, which knows it by its `tag`."""

    message: ReceivedMessage
    call: "TaskCall"
    #: Another one each time that the task is started.
    tag: str = ""
    #: What the try before, which lacked something, leaves to the next one; see `Unavailable`.
    resumes: int | None = None


@dataclass(frozen=True)
class AdaptedCall:
    """The task call that a bare document stands for."""

    task: str
    task_id: str
    args: tuple[Any, ...]


#: Takes the decoded JSON object; raises ValueError, whose text is the reason, to quarantine it.
BareMessageAdapter = Callable[[dict[str, Any]], AdaptedCall]


class InvalidMessage(Exception):
    """The message is no task call. `reason` is fit for a log: it holds nothing of the body."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class TaskCall:
    """What a message asks for."""

    task: str
    task_id: str
    args: list[Any]
    kwargs: dict[str, Any]
    root_id: str | None = None
    parent_id: str | None = None
    eta: datetime | None = None
    expires: datetime | None = None
    #: Seconds; None means the limit of the worker.
    hard_time_limit: float | None = None
    soft_time_limit: float | None = None
    #: Headers that are not Celery's, such as those of tracing.
    extra: dict[str, Any] = field(default_factory=dict)


def decode(text: str, adapter: BareMessageAdapter | None) -> TaskCall:
    """Return the task call that the body of an SQS message stands for.

    Raises InvalidMessage for anything else. Bare documents become calls by `adapter`.
    """
    document = _object(_to_json(text), "the message")
    is_celerys = "headers" in document and "body" in document
    if is_celerys and _is_envelope(document):
        return _read_celery_message(document)
    if is_celerys or document.get("Type") == "Notification":
        # A bare document may have such keys too; the adapter knows its own.
        with suppress(InvalidMessage):
            return _adapt(document, adapter)
    if is_celerys:
        return _read_celery_message(document)
    if document.get("Type") == "Notification":
        # https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html
        message = document.get("Message")
        if not isinstance(message, str):
            _refuse("a notification without a message")
        document = _object(_parse(message), "the notification's message")
    return _adapt(document, adapter)


def _is_envelope(document: Mapping[str, Any]) -> bool:
    headers = document["headers"]
    return (
        isinstance(headers, dict)
        and "task" in headers
        and "content-type" in document
        and "properties" in document
    )


def _to_json(text: str) -> Any:
    text = text.strip()
    if text[:1] not in ("{", "["):
        text = _from_base64(text, "the message")
    return _parse(text)


def _from_base64(text: str, what: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:  # not ASCII, not base64, not UTF-8
        _refuse(f"{what} is neither JSON nor base64 of UTF-8")


def _parse(text: str) -> Any:
    """Parse strict JSON. Not kombu's way, which turns some objects into other things."""
    try:
        document = _DECODER.decode(text)
    except RecursionError:
        _refuse(f"nested deeper than {MAX_NESTING} levels")
    except ValueError:  # also integers of more digits than Python reads
        _refuse("not JSON")
    # Half a surrogate pair can only come from an escape. Brackets within strings, and escapes of
    # whole pairs, cost no more than the walk.
    if text.count("[") + text.count("{") > MAX_NESTING or "\\ud" in text.lower():
        _check_values(document)
    return document


def _refuse_constant(name: str) -> Never:
    _refuse(f"{name} is not JSON")


#: One for all: `json.loads` would make another for each text.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _check_values(document: Any) -> None:
    """Refuse what cannot travel on: nesting without end, text that is not Unicode."""
    level = [document]
    for _ in range(MAX_NESTING):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(value.keys())
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
            elif isinstance(value, str) and not _is_unicode(value):
                _refuse("text with half a surrogate pair")
        if not below:
            return
        level = below
    _refuse(f"nested deeper than {MAX_NESTING} levels")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_celery_message(document: Mapping[str, Any]) -> TaskCall:
    headers = _object(document["headers"], "headers")
    properties = _object(document.get("properties", {}), "properties")
    if document.get("content-type") != "application/json":
        _refuse("content type is not application/json")
    if document.get("content-encoding", "utf-8") not in ("utf-8", "UTF-8"):
        _refuse("content encoding is not utf-8")
    if headers.get("compression") is not None:
        _refuse("the body is compressed")
    args, kwargs = _read_arguments(document["body"], properties.get("body_encoding"))
    hard, soft = _time_limits(headers.get("timelimit"))
    return TaskCall(
        task=_name(headers.get("task"), "task"),
        task_id=_name(headers.get("id"), "id"),
        args=args,
        kwargs=kwargs,
        root_id=_optional_name(headers.get("root_id"), "root_id"),
        parent_id=_optional_name(headers.get("parent_id"), "parent_id"),
        eta=_time(headers.get("eta"), "eta"),
        expires=_time(headers.get("expires"), "expires"),
        hard_time_limit=hard,
        soft_time_limit=soft,
        extra=_extra(headers),
    )


def _read_arguments(body: object, encoding: object) -> tuple[list[Any], dict[str, Any]]:
    if not isinstance(body, str):
        _refuse("body is not text")
    if encoding == "base64":
        body = _from_base64(body, "body")
    elif encoding not in (None, "utf-8"):
        _refuse("body encoding is neither utf-8 nor base64")
    parts = _parse(body)
    if not isinstance(parts, list) or len(parts) != 3:
        _refuse("body is not [args, kwargs, embed]")
    args, kwargs, embed = parts
    if not isinstance(args, list):
        _refuse("args is not a list")
    if any(_object(embed, "embed").values()):
        # They would send messages from the task's process, where no outbox keeps them.
        _refuse("callbacks, chains and chords are not supported")
    return args, _object(kwargs, "kwargs")


def _time_limits(limits: object) -> tuple[float | None, float | None]:
    if limits is None:
        return None, None
    if not isinstance(limits, list) or len(limits) != 2:
        _refuse("timelimit is not [hard, soft]")
    hard, soft = limits
    return _seconds(hard), _seconds(soft)


def _seconds(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse("timelimit is not in seconds")
    if not 0 < value < math.inf:
        _refuse("timelimit is not above 0")
    return value


def _time(value: object, what: str) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, str):
        _refuse(f"{what} is not a time")
    try:
        time = datetime.fromisoformat(value)
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    except ValueError:
        _refuse(f"{what} is not a time")


def _name(value: object, what: str) -> str:
    if not isinstance(value, str):
        _refuse(f"{what} is missing or not text")
    if not 0 < len(value) <= MAX_ID_LENGTH or not value.isprintable():
        _refuse(f"{what} is not 1..{MAX_ID_LENGTH} printable characters")
    return value


def _optional_name(value: object, what: str) -> str | None:
    return None if value is None else _name(value, what)


def _extra(headers: Mapping[str, Any]) -> dict[str, Any]:
    # A header becomes an attribute of `task.request`; one named like a part of it would replace it.
    extra = {
        name: value
        for name, value in headers.items()
        if not (name in _CELERYS_HEADERS or hasattr(Context, name) or name.startswith("_"))
    }
    if isinstance(headers.get("headers"), dict):  # Sentry keeps its own in there
        extra["headers"] = headers["headers"]
    return extra


def _adapt(document: dict[str, Any], adapter: BareMessageAdapter | None) -> TaskCall:
    if adapter is None:
        _refuse("not a Celery message")
    try:
        adapted = adapter(document)
    except ValueError as error:
        _refuse(f"not adopted: {error}"[:200])
    except RecursionError:
        _refuse(f"nested deeper than {MAX_NESTING} levels")
    return TaskCall(
        task=_name(adapted.task, "task"),
        task_id=_name(adapted.task_id, "id"),
        args=list(adapted.args),
        kwargs={},
    )


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse(f"{what} is not an object")
    return value


def _refuse(reason: str) -> Never:
    raise InvalidMessage(reason)
