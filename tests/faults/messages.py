"""A Celery message as it lies on SQS, built by hand so that a test can get any part wrong."""

from __future__ import annotations

import base64
import json
from typing import Any
from uuid import uuid4

LEFT_OUT: Any = object()
"""As the value of a key: the message has no such key."""


def b64(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def task_body(args: Any = (), kwargs: Any = LEFT_OUT, embed: Any = LEFT_OUT) -> str:
    """Arguments as protocol 2 sends them: `[args, kwargs, embed]`."""
    kwargs = {} if kwargs is LEFT_OUT else kwargs
    if embed is LEFT_OUT:
        embed = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
    return b64(json.dumps([args, kwargs, embed]))


def envelope(
    task: str,
    args: Any = (),
    *,
    headers: dict[str, Any] | None = None,
    properties: dict[str, Any] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """What kombu writes for `task`, before base64. `headers`, `properties` and `changes` replace
    single keys, or take them out (LEFT_OUT)."""
    task_id = str(uuid4())
    message = {
        "body": task_body(args),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {
            "lang": "py",
            "task": task,
            "id": task_id,
            "root_id": task_id,
            "parent_id": None,
            "group": None,
            "shadow": None,
            "eta": None,
            "expires": None,
            "retries": 0,
            "timelimit": [None, None],
            "argsrepr": "()",
            "kwargsrepr": "{}",
            "origin": "gen1@test",
            "ignore_result": True,
        },
        "properties": {
            "correlation_id": task_id,
            "reply_to": str(uuid4()),
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": "celery"},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": str(uuid4()),
        },
    }
    message["headers"] = _changed(message["headers"], headers or {})
    message["properties"] = _changed(message["properties"], properties or {})
    return _changed(message, {key.replace("_", "-"): value for key, value in changes.items()})


def celery_message(task: str, args: Any = (), **changes: Any) -> str:
    """The body of an SQS message for `task`; `changes` as for `envelope`."""
    return b64(json.dumps(envelope(task, args, **changes)))


def _changed(document: Any, changes: dict[str, Any]) -> dict[str, Any]:
    merged = document | changes
    return {key: value for key, value in merged.items() if value is not LEFT_OUT}
