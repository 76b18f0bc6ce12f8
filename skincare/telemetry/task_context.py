"""What is known of a task, on all lines that are written while it runs."""

import re
from collections.abc import Mapping
from typing import Any, Final

import structlog
from celery import Task, signals

#: Fields of an event that its lines carry. They come from outside: nothing but an id is taken.
_EVENT_FIELDS: Final = ("event_id", "event_type", "order_id", "payment_id", "request_id")
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def follow_tasks() -> None:
    """Bind the fields of each task from its start to its end. Call it once in a worker."""
    signals.task_prerun.connect(_bind, dispatch_uid="skincare.telemetry.bind")
    signals.task_postrun.connect(_unbind, dispatch_uid="skincare.telemetry.unbind")


def _bind(*, task: Task, task_id: str, args: Any, **_: Any) -> None:
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(
        task=task.name,
        queue=(task.request.delivery_info or {}).get("routing_key"),
        receive_count=getattr(task.request, "receive_count", None),
        **_event_fields(args[0] if args else None),
    )


def _event_fields(document: object) -> dict[str, str]:
    if not isinstance(document, Mapping):
        return {}
    fields = {name: document.get(name) for name in _EVENT_FIELDS}
    return {
        name: value
        for name, value in fields.items()
        if isinstance(value, str) and _ID.fullmatch(value)
    }


def _unbind(**_: Any) -> None:
    structlog.contextvars.clear_contextvars()
