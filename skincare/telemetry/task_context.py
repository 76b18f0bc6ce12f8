"""What is known of a task, on all lines that are written while it runs."""

import re
from collections.abc import Mapping
from typing import Final

import structlog

#: Fields of an event that its lines carry. They come from outside: nothing but an id is taken.
_EVENT_FIELDS: Final = ("event_id", "event_type", "order_id", "payment_id", "request_id")
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def bind(*, task: str, queue: str | None, receive_count: int | None, document: object) -> None:
    """Put the task, its queue and the ids of its event on all lines of this process from now on."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(
        task=task, queue=queue, receive_count=receive_count, **_event_fields(document)
    )


def clear() -> None:
    """Forget the task: it has ended."""
    structlog.contextvars.clear_contextvars()


def _event_fields(document: object) -> dict[str, str]:
    if not isinstance(document, Mapping):
        return {}
    fields = {name: document.get(name) for name in _EVENT_FIELDS}
    return {
        name: value
        for name, value in fields.items()
        if isinstance(value, str) and _ID.fullmatch(value)
    }
