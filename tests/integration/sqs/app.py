"""A Celery project that uses skincare.sqs and nothing else of ours: no Django, no settings.

    TEST_APP='{"queues": {"main": "http://…"}, "endpoint_url": "http://…", "policy": {…},
               "diary": "/tmp/…/diary", "revoked": []}' celery -A tests.integration.sqs.app worker

Every task writes what it does into the diary, a file of JSON lines, so that a test sees what ran,
how often, and in which process.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from celery import Celery, Task
from celery.exceptions import Ignore, Reject, SoftTimeLimitExceeded
from celery.signals import setup_logging, worker_ready
from celery.worker import state

from skincare.sqs import Observer, SQSPolicy, configure
from skincare.sqs.decoder import AdaptedCall
from skincare.sqs.outcome import RetryLater, Terminal, Unavailable

OPTIONS: dict[str, Any] = json.loads(os.environ["TEST_APP"])
_PLAIN_FIELDS = set(vars(logging.makeLogRecord({})))


class JSONLines(logging.Formatter):
    """One JSON object a line, with the fields that the transport passes as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        extra = {key: value for key, value in vars(record).items() if key not in _PLAIN_FIELDS}
        line = {
            "event": record.getMessage(),
            "level": record.levelname,
            "logger": record.name,
            "pid": record.process,
            **extra,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=repr)


@setup_logging.connect
def log_json_lines(**_: Any) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JSONLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


@worker_ready.connect
def log_ready(**_: Any) -> None:
    logging.getLogger("test").info("worker_ready")


def adapt(document: dict[str, Any]) -> AdaptedCall:
    """Bare events `{"event_id": "…", "event_type": "record"}` become calls of the task `record`."""
    event_id, event_type = document.get("event_id"), document.get("event_type")
    if event_type == "bug in adapt":
        return document["klingon"]
    if event_type == "unknown task":
        return AdaptedCall("nobody.knows_me", str(event_id), ())
    if not isinstance(event_id, str) or not event_id.isascii():
        raise ValueError("event_id is not an ASCII string")
    if event_type != "record":
        raise ValueError("event_type is not 'record'")
    return AdaptedCall("record", event_id, (event_id,))


class LoggingObserver(Observer):
    """Writes each report as a line `observed`."""

    def poll_failed(self, queue: str) -> None:
        log_report("poll_failed", queue)

    def acknowledgement_denied(self, action: str) -> None:
        log_report("acknowledgement_denied", action)

    def message_quarantined(self, message_id: str) -> None:
        log_report("message_quarantined", message_id)

    def task_lost(self, task: str) -> None:
        log_report("task_lost", task)
        raise RuntimeError("an observer with a bug")


def log_report(report: str, about: str) -> None:
    logging.getLogger("test").info("observed", extra={"report": report, "about": about})


def beside_diary(name: str) -> str:
    return os.path.join(os.path.dirname(OPTIONS["diary"]), name)


def fork_unless_full(fork: Callable[[], int] = os.fork) -> int:
    """Fails, as on a host that is full, as long as there is a file `full` beside the diary."""
    if os.path.exists(beside_diary("full")):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return fork()


os.fork = fork_unless_full
app = Celery("lifted-out")
configure(
    app,
    policy=SQSPolicy(**OPTIONS["policy"]),
    queues=OPTIONS["queues"],
    region="us-east-1",
    endpoint_url=OPTIONS["endpoint_url"],
    adapter=adapt,
    observer=LoggingObserver(),
)
state.revoked.update(OPTIONS["revoked"])


def note(task: Task, line: object, step: str) -> None:
    entry = {
        "line": line if isinstance(line, str) else repr(line),
        "step": step,
        "task_id": task.request.id,
        "pid": os.getpid(),
        "worker_pid": os.getppid(),
        "receive_count": task.request.receive_count,
        "message_id": task.request.sqs_message_id,
        "at": time.time(),
    }
    diary = os.open(OPTIONS["diary"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(diary, json.dumps(entry).encode() + b"\n")
    os.close(diary)


@app.task(bind=True, name="record")
def record(self: Task, line: str) -> None:
    note(self, line, "done")


@app.task(bind=True, name="sleep")
def sleep(self: Task, line: str, seconds: float) -> None:
    note(self, line, "started")
    time.sleep(seconds)
    note(self, line, "done")


@app.task(bind=True, name="stubborn")
def stubborn(self: Task, line: str) -> None:
    """Does not end at the soft time limit."""
    note(self, line, "started")
    try:
        time.sleep(60)
    except SoftTimeLimitExceeded:
        note(self, line, "asked to end")
        time.sleep(60)


@app.task(bind=True, name="fail")
def fail(self: Task, line: str, times: int) -> None:
    """Raises on the first `times` receives."""
    note(self, line, "started")
    if self.request.receive_count <= times:
        raise RuntimeError("as told")
    note(self, line, "done")


@app.task(bind=True, name="raise_terminal")
def raise_terminal(self: Task, line: str) -> None:
    note(self, line, "started")
    raise Terminal("as told")


@app.task(bind=True, name="leave")
def leave(self: Task, line: str) -> None:
    """Ends in the way that `line` names: all of them delete the message, copy it or end the worker
    in stock Celery."""
    note(self, line, "started")
    match line:
        case "retry":
            raise self.retry(countdown=0)
        case "ignore":
            raise Ignore
        case "reject":
            raise Reject("as told", requeue=False)
        case "reject and requeue":
            raise Reject("as told", requeue=True)
        case "exit":
            sys.exit(3)
        case "exit at once":
            os._exit(3)
        case "out of memory":
            raise MemoryError
        case "interrupt":
            raise KeyboardInterrupt
        case "exception that cannot be pickled":
            raise Unpicklable(lambda: None)
        case "exception that only this process knows":
            raise only_here(Exception)
        case "exit that only this process knows":
            raise only_here(SystemExit)
        case "end that only this process knows":
            raise only_here(BaseException)
        case "terminal that cannot be rebuilt":
            raise Closed("warehouse", "sunday")
        case "exception that cannot be described":
            raise Nameless
    raise ValueError(line)


def only_here(base: type[BaseException]) -> BaseException:
    """An error of a module that no other process can import."""
    module = sys.modules.setdefault("only_here", ModuleType("only_here"))
    module.Odd = type("Odd", (base,), {"__module__": "only_here"})  # type: ignore[attr-defined]
    return module.Odd("as told")


class Closed(Terminal):
    """Takes other arguments than it hands to its base, so that no pickle of it can be read."""

    def __init__(self, place: str, day: str) -> None:
        super().__init__(f"{place} is closed on {day}")


class Nameless(RetryLater):
    """Cannot even say what it is."""

    def __init__(self) -> None:
        super().__init__("x", after=0)

    reason = property(lambda self: 1 / 0, lambda self, value: None)  # type: ignore[assignment]


class Unpicklable(Exception):
    """Holds what no process can send to another."""


@app.task(bind=True, name="retry_later")
def retry_later(self: Task, line: str, after: float) -> None:
    """Asks on the first receive to come back `after` seconds later."""
    note(self, line, "started")
    if self.request.receive_count == 1:
        raise RetryLater("as told", after=after)
    note(self, line, "done")


@app.task(bind=True, name="need_database")
def need_database(self: Task, line: str) -> None:
    """Lacks its database as long as there is a file `away` beside the diary."""
    note(self, line, "started")
    if os.path.exists(beside_diary("away")):
        raise Unavailable("PostgreSQL")
    note(self, line, "done")


@app.task(bind=True, name="leave_busy_thread")
def leave_busy_thread(self: Task, line: str) -> None:
    """Ends well, and leaves a thread that soon keeps the interpreter for itself for minutes."""

    def keep_the_interpreter() -> None:
        time.sleep(0.5)
        re.match(r"(a+)+$", "a" * 40 + "b")

    threading.Thread(target=keep_the_interpreter, daemon=True).start()
    note(self, line, "done")


@app.task(bind=True, name="die")
def die(self: Task, line: str) -> None:
    """Kills its own process on the first receive, as the kernel does when memory is short."""
    note(self, line, "started")
    if self.request.receive_count == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    note(self, line, "done")


@app.task(bind=True, name="modules")
def modules(self: Task) -> None:
    """Writes which of the modules that the transport must not need are imported.

    (Of Django that is `django.conf`: kombu imports a part of Django where it is installed.)
    """
    unwanted = {"django.conf", "structlog", "orders", "payments", "skincare.events"}
    note(self, ",".join(sorted(unwanted & set(sys.modules))), "done")
