"""Messages of which no task can be made, and messages that only look like it.

`poison(task)` can never run: each has to reach the dead-letter queue. `oddities(task)` are damaged
in a part that a task can do without: each has to run or to reach the dead-letter queue.
"""

from __future__ import annotations

import gzip
import json
from typing import NamedTuple

from tests.faults.messages import LEFT_OUT, b64, celery_message, envelope, task_body

NESTING = 20_000


class Shape(NamedTuple):
    """One kind of damage; `body` is the body of the SQS message."""

    name: str
    body: str


def poison(task: str) -> list[Shape]:
    """Every shape that cannot run. `task` is a registered task that takes one argument."""
    shapes = {
        **_text(),
        **_documents(),
        **_envelopes(task),
        **_bodies(task),
        **_headers(task),
        **_bare_events(),
        **_notifications(),
    }
    return [Shape(name, body) for name, body in shapes.items()]


def _text() -> dict[str, str]:
    return {
        "a space": " ",
        "not JSON": "hello",
        "not base64": "%%%%",
        "XML": "<event><event_id>1</event_id></event>",
        "base64 of text": b64("hello, world"),
        "base64 of invalid UTF-8": b64(b'{"event_id": "\xff\xfe\xc3\x28"}'),
        "base64 of UTF-16": b64('{"event_id": "1"}'.encode("utf-16")),
        "base64 of gzip": b64(gzip.compress(b'{"event_id": "1"}')),
        "base64 of pickle": b64(b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07hello.."),
    }


def _documents() -> dict[str, str]:
    """JSON, or nearly, that is neither a Celery message nor an event."""
    return {
        "JSON cut short": '{"event_id": "1", "event_type": "order.con',
        "two JSON documents": '{"event_id": "1"} {"event_id": "2"}',
        "list": "[]",
        "list of objects": '[{"event_id": "1"}]',
        "number": "5",
        "string": '"hello"',
        "null": "null",
        "true": "true",
        "NaN": "NaN",
        "empty object": "{}",
        "object of another kind": '{"foo": 1}',
        "object in a string": json.dumps('{"event_id": "1"}'),
        "base64 of a list": b64("[1, 2, 3]"),
        "base64 of a string": b64('"hello"'),
        "base64 of null": b64("null"),
        "lists nested deep": "[" * NESTING + "]" * NESTING,
        "objects nested deep": '{"a":' * NESTING + "1" + "}" * NESTING,
        "base64 of objects nested deep": b64('{"a":' * NESTING + "1" + "}" * NESTING),
        "integer of 100,000 digits": '{"event_id": ' + "9" * 100_000 + "}",
        "typed value": '{"__type__": "datetime", "__value__": "never"}',
        "typed value of unknown type": '{"__type__": "klingon", "__value__": 1}',
    }


def _envelopes(task: str) -> dict[str, str]:
    """Celery messages whose outer parts are missing or of the wrong type."""
    whole = celery_message(task, ["x"])
    return {
        "Celery message cut short": whole[: len(whole) // 2 // 4 * 4],
        "Celery message in base64 twice": b64(whole),
        "list of Celery messages": b64(json.dumps([envelope(task, ["x"])])),
        "headers missing": _without(task, "headers"),
        "headers null": _with(task, "headers", None),
        "headers a list": _with(task, "headers", ["task", task]),
        "headers a string": _with(task, "headers", task),
        "headers a number": _with(task, "headers", 7),
        "headers empty": _with(task, "headers", {}),
        "headers nested deep": b64(
            json.dumps(envelope(task)).replace(
                '"retries": 0', '"retries": ' + "[" * NESTING + "]" * NESTING
            )
        ),
        "properties a list": _with(task, "properties", [1]),
        "properties a string": _with(task, "properties", "none"),
        "content type pickle": celery_message(
            task, ["x"], content_type="application/x-python-serialize"
        ),
        "content type YAML": celery_message(task, ["x"], content_type="application/x-yaml"),
        "content type unknown": celery_message(task, ["x"], content_type="application/x-klingon"),
        "content type a number": celery_message(task, ["x"], content_type=7),
        "content type a list": celery_message(task, ["x"], content_type=["application/json"]),
        "content encoding unknown": celery_message(task, ["x"], content_encoding="klingon"),
        "compression unknown": celery_message(task, ["x"], headers={"compression": "klingon"}),
        "compression a number": celery_message(task, ["x"], headers={"compression": 7}),
        "compression without compressed body": celery_message(
            task, ["x"], headers={"compression": "application/x-gzip"}
        ),
        "body encoding unknown": celery_message(task, ["x"], properties={"body_encoding": "rot13"}),
        "body encoding a list": celery_message(task, ["x"], properties={"body_encoding": ["a"]}),
    }


def _bodies(task: str) -> dict[str, str]:
    """Celery messages whose arguments are not arguments."""
    deep = "[" * NESTING + "]" * NESTING
    return {
        "body missing": celery_message(task, body=LEFT_OUT),
        "body null": celery_message(task, body=None),
        "body empty": celery_message(task, body=""),
        "body a number": celery_message(task, body=7),
        "body a list": celery_message(task, body=[["x"], {}, {}]),
        "body an object": celery_message(task, body={"args": ["x"]}),
        "body not base64": celery_message(task, body="%%%%"),
        "body base64 of text": celery_message(task, body=b64("hello")),
        "body base64 of invalid UTF-8": celery_message(task, body=b64(b'[["\xff"], {}, {}]')),
        "arguments a JSON object": celery_message(task, body=b64('{"a": 1, "b": 2, "c": 3}')),
        "arguments a JSON string": celery_message(task, body=b64('"abc"')),
        "arguments a JSON number": celery_message(task, body=b64("7")),
        "arguments null": celery_message(task, body=b64("null")),
        "two parts": celery_message(task, body=b64('[["x"], {}]')),
        "four parts": celery_message(task, body=b64('[["x"], {}, {}, {}]')),
        "args a number": celery_message(task, body=task_body(7)),
        "args an object": celery_message(task, body=task_body({"a": 1, "b": 2})),
        "args a string": celery_message(task, body=task_body("xyz")),
        "args nested deep": celery_message(task, body=b64(f"[[{deep}], {{}}, {{}}]")),
        "kwargs a list": celery_message(task, body=task_body(["x"], ["line"])),
        "kwargs a string": celery_message(task, body=task_body(["x"], "line")),
        "kwargs a number": celery_message(task, body=task_body(["x"], 7)),
        "too few arguments": celery_message(task, []),
        "too many arguments": celery_message(task, ["x", "y", "z"]),
        "unknown keyword": celery_message(task, body=task_body(["x"], {"klingon": 1})),
    }


def _headers(task: str) -> dict[str, str]:
    """Celery messages whose headers name no task, or name impossible terms for it."""
    return {
        "task missing": celery_message(task, ["x"], headers={"task": LEFT_OUT}),
        "task null": celery_message(task, ["x"], headers={"task": None}),
        "task a number": celery_message(task, ["x"], headers={"task": 7}),
        "task a list": celery_message(task, ["x"], headers={"task": [task]}),
        "task an object": celery_message(task, ["x"], headers={"task": {"name": task}}),
        "task empty": celery_message("", ["x"]),
        "task unknown": celery_message("nobody.knows_me", ["x"]),
        "task name of 10,000 characters": celery_message("x" * 10_000, ["x"]),
        "task name with NUL": celery_message(task + "\0", ["x"]),
        "task name with half a surrogate pair": celery_message(task + "\ud800", ["x"]),
        "id a list": celery_message(task, ["x"], headers={"id": ["1"]}),
        "id an object": celery_message(task, ["x"], headers={"id": {"a": 1}}),
        "expired": celery_message(task, ["x"], headers={"expires": "2020-01-01T00:00:00+00:00"}),
        "expiry not a time": celery_message(task, ["x"], headers={"expires": "yesterday"}),
        "expiry an object": celery_message(task, ["x"], headers={"expires": {"at": 1}}),
        "eta not a time": celery_message(task, ["x"], headers={"eta": "soon"}),
        "eta a list": celery_message(task, ["x"], headers={"eta": [2026, 1, 1]}),
        "eta in the year 9999": celery_message(
            task, ["x"], headers={"eta": "9999-12-31T23:59:59+00:00"}
        ),
        "time limit a string": celery_message(task, ["x"], headers={"timelimit": "forever"}),
        "time limit of strings": celery_message(task, ["x"], headers={"timelimit": ["one", "two"]}),
        "time limit of one part": celery_message(task, ["x"], headers={"timelimit": [1]}),
        "time limit a number": celery_message(task, ["x"], headers={"timelimit": 7}),
    }


def _bare_events() -> dict[str, str]:
    """Events without the parts that name the task; the rest is the task's to check."""
    event = {"event_id": "poison-1", "event_type": "order.confirmed"}
    return {
        "event without id": json.dumps({"event_type": "order.confirmed"}),
        "event id null": json.dumps(event | {"event_id": None}),
        "event id a number": json.dumps(event | {"event_id": 7}),
        "event id an object": json.dumps(event | {"event_id": {"a": 1}}),
        "event id with half a surrogate pair": json.dumps(event | {"event_id": "a\ud800"}),
        "event without type": json.dumps({"event_id": "poison-1"}),
        "event type a list": json.dumps(event | {"event_type": ["order.confirmed"]}),
        "event in the fields of a task": json.dumps({"task": event, "id": "poison-1"}),
    }


def _notifications() -> dict[str, str]:
    """SNS envelopes without an event in them."""
    notification = {
        "Type": "Notification",
        "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
        "TopicArn": "arn:aws:sns:us-east-1:000000000000:orders",
        "Timestamp": "2026-01-01T00:00:00.000Z",
    }
    return {
        "notification without message": json.dumps(notification),
        "notification of null": json.dumps(notification | {"Message": None}),
        "notification of a number": json.dumps(notification | {"Message": 7}),
        "notification of text": json.dumps(notification | {"Message": "hello"}),
        "notification of a list": json.dumps(notification | {"Message": "[1]"}),
        "notification of an object of another kind": json.dumps(
            notification | {"Message": '{"foo": 1}'}
        ),
        "notification nested deep": json.dumps(
            notification | {"Message": "[" * NESTING + "]" * NESTING}
        ),
        "subscription confirmation": json.dumps(
            notification | {"Type": "SubscriptionConfirmation", "Token": "0", "Message": "Welcome"}
        ),
    }


def oddities(task: str) -> list[Shape]:
    """Damage that a transport may repair or refuse; losing the message is the only wrong answer."""
    shapes = {
        "properties missing": _without(task, "properties"),
        "properties null": _with(task, "properties", None),
        "properties empty": _with(task, "properties", {}),
        "delivery info missing": celery_message(
            task, ["x"], properties={"delivery_info": LEFT_OUT}
        ),
        "delivery info null": celery_message(task, ["x"], properties={"delivery_info": None}),
        "delivery info a list": celery_message(task, ["x"], properties={"delivery_info": [1]}),
        "delivery info a string": celery_message(task, ["x"], properties={"delivery_info": "x"}),
        "routing key of another queue": celery_message(
            task, ["x"], properties={"delivery_info": {"exchange": "", "routing_key": "other"}}
        ),
        "routing key a list": celery_message(
            task, ["x"], properties={"delivery_info": {"exchange": "", "routing_key": ["a"]}}
        ),
        "delivery tag missing": celery_message(task, ["x"], properties={"delivery_tag": LEFT_OUT}),
        "delivery tag a list": celery_message(task, ["x"], properties={"delivery_tag": ["a"]}),
        "priority a string": celery_message(task, ["x"], properties={"priority": "high"}),
        "correlation id an object": celery_message(
            task, ["x"], properties={"correlation_id": {"a": 1}}
        ),
        "content type missing": celery_message(task, ["x"], content_type=LEFT_OUT),
        "content encoding missing": celery_message(task, ["x"], content_encoding=LEFT_OUT),
        "content encoding a number": celery_message(task, ["x"], content_encoding=7),
        "id missing": celery_message(task, ["x"], headers={"id": LEFT_OUT}),
        "id null": celery_message(task, ["x"], headers={"id": None}),
        "id a number": celery_message(task, ["x"], headers={"id": 7}),
        "root id a list": celery_message(task, ["x"], headers={"root_id": ["a"]}),
        "group an object": celery_message(task, ["x"], headers={"group": {"a": 1}}),
        "shadow a number": celery_message(task, ["x"], headers={"shadow": 7}),
        "origin a list": celery_message(task, ["x"], headers={"origin": [1]}),
        "retries a string": celery_message(task, ["x"], headers={"retries": "many"}),
        "time limit longer than the visibility": celery_message(
            task, ["x"], headers={"timelimit": [90_000, 80_000]}
        ),
        "args null": celery_message(task, body=task_body(None, {"line": "x"})),
        "callbacks of another kind": celery_message(
            task, body=task_body(["x"], {}, {"callbacks": [5], "chain": "x"})
        ),
        "typed argument": celery_message(task, [{"__type__": "decimal", "__value__": "1.50"}]),
        "embed a string": celery_message(task, body=task_body(["x"], {}, "none")),
        "embed a list": celery_message(task, body=task_body(["x"], {}, [1])),
        "typed argument that fails": celery_message(
            task, [{"__type__": "datetime", "__value__": "never"}]
        ),
        "protocol 1": b64(
            json.dumps(
                envelope(task)
                | {"headers": {}, "body": b64(json.dumps({"task": task, "id": "1", "args": ["x"]}))}
            )
        ),
        "NUL in an argument": celery_message(task, ["a\0b"]),
        "half a surrogate pair in an argument": celery_message(task, ["a\ud800b"]),
        "compressed body of 50 MB": celery_message(
            task,
            body=b64(gzip.compress(json.dumps([["x" * 50_000_000], {}, {}]).encode(), 9)),
            headers={"compression": "application/x-gzip"},
        ),
    }
    return [Shape(name, body) for name, body in shapes.items()]


def _with(task: str, key: str, value: object) -> str:
    """A Celery message with one outer part replaced by `value`."""
    return b64(json.dumps(envelope(task, ["x"]) | {key: value}))


def _without(task: str, key: str) -> str:
    message = envelope(task, ["x"])
    del message[key]
    return b64(json.dumps(message))
