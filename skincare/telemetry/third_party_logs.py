"""Log lines of Celery, gunicorn, Django and other libraries, brought into the form of our own.

Ours name an event and give fields. A library writes sentences, and some of Celery's have whole
messages in them: `Received invalid task message: … The full contents of the message body was: …`.
So a library's argument is shown only where it cannot be more than a few words.
"""

import logging
import re
from typing import Any, Final

#: A library's argument that is shown. JSON, a repr and a query string have other characters too.
_FEW_WORDS: Final = re.compile(r"[\w@.:/ ,()!\[\]-]{0,120}")
_QUERY: Final = re.compile(r"\?\S*")
_EVENT_NAME: Final = re.compile(r"[a-z0-9]+(_[a-z0-9]+)+")

#: How Celery's records of one task begin (celery.app.trace), and our event for them.
_TASK_EVENTS: Final = (
    ("Task %(name)s[%(id)s] received", "task_received"),
    ("Task %(name)s[%(id)s] succeeded", "task_succeeded"),
    ("Task %(name)s[%(id)s] retry", "task_retried"),
    ("Task %(name)s[%(id)s] %(exc)s", "task_rejected"),
)
#: The other ends of a task, by Celery's `description` of them.
_TASK_ENDS: Final = {
    "raised unexpected": "task_failed",
    "raised expected": "task_message_kept",
    "INTERNAL ERROR": "task_failed_in_celery",
    "ignored": "task_ignored",
    "rejected": "task_rejected",
}
#: Sentences worth a name: how they begin, our event, and what their arguments are.
_SENTENCES: Final = (
    ("Soft time limit (", "soft_time_limit_exceeded", ("limit_seconds", "task", "task_id")),
    ("Hard time limit (", "hard_time_limit_exceeded", ("limit_seconds", "task", "task_id")),
    ("%s ready.", "worker_ready", ("worker",)),
)


def is_ours(record: logging.LogRecord, args: Any) -> bool:
    """Whether the record names an event and has its fields as extras."""
    return (
        record.name.startswith("skincare.")
        and not args
        and isinstance(record.msg, str)
        and _EVENT_NAME.fullmatch(record.msg) is not None
    )


def line_of(record: logging.LogRecord, args: Any) -> dict[str, Any]:
    """Return the event name and the fields of a library's record with these `args`."""
    template = str(record.msg)
    task = _task_line(template, getattr(record, "data", args))
    if task is not None:
        return task
    if template.startswith("Invalid request from "):
        # gunicorn quotes the client's address and the line that it could not read.
        return {"event": "request_unreadable"}
    library = "python" if record.name == "py.warnings" else record.name.partition(".")[0]
    line = {"event": f"{library}_message", "message": _sentence(template, args)}
    for start, event, names in _SENTENCES:
        if template.startswith(start) and isinstance(args, tuple):
            return line | {"event": event} | dict(zip(names, args, strict=False))
    return line


def _task_line(template: str, call: object) -> dict[str, Any] | None:
    if not isinstance(call, dict) or "name" not in call or "id" not in call:
        return None
    event = _TASK_ENDS.get(str(call.get("description")), "task_message")
    for start, name in _TASK_EVENTS:
        if template.startswith(start):
            event = name
    line: dict[str, Any] = {"event": event, "task": call["name"], "task_id": call["id"]}
    if "runtime" in call:
        line["duration_ms"] = round(call["runtime"] * 1000, 1)
    if "exc" in call:
        line["error"] = str(call["exc"])
    return line


def _sentence(template: str, args: Any) -> str:
    if not args:
        return _QUERY.sub("", template)
    try:
        if isinstance(args, dict) and "%(" in template:
            return template % {name: _shown(value) for name, value in args.items()}
        # logging unpacks a sole argument that is a dict.
        values = (args,) if isinstance(args, dict) else args
        return template % tuple(_shown(value) for value in values)
    except (TypeError, ValueError, KeyError):
        return template


def _shown(value: object) -> object:
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        text = _QUERY.sub("", value)
        if _FEW_WORDS.fullmatch(text):
            return text
    return f"<{type(value).__name__}>"
