"""One log line is one JSON object on stdout; on a developer's terminal, a readable line.

Every line has timestamp, level, event, service, env, release and logger, and where it is known
request_id, event_id, order_id, payment_id, receive_count, task, queue and duration_ms.
"""

import json
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from uuid import UUID

import structlog
from django.core.exceptions import ImproperlyConfigured
from structlog.typing import EventDict, Processor, WrappedLogger

from skincare.telemetry import third_party_logs
from skincare.telemetry.identity import IDENTITY
from skincare.telemetry.redaction import redact_field

log = structlog.get_logger(__name__)

_OURS: Final = ("skincare", "orders", "payments")
#: Their errors are reported where they are raised; see `report_errors_to`.
_REPORTED_ELSEWHERE: Final = ("celery.app.trace", "django.request", "sentry_sdk.errors")
#: Fields whose values are no more than words of the code and the settings.
_FROM_CODE: Final = frozenset({"timestamp", "level", "event", "service", "env", "logger"})
_NOT_FOR_PERSONS: Final = frozenset({"env", "release", "environment", "_aws"})
_PLAIN_TYPES: Final = (UUID, Decimal, date, Path)


#: Where Django logs requests that it refuses as suspicious. Anybody can send one.
_BY_ANYBODY: Final = "django.security"
_FOR_NOW: Final = (502, 503)

ErrorReporter = Callable[[Mapping[str, Any], Any], None]
_report_error: ErrorReporter | None = None


def report_errors_to(reporter: ErrorReporter) -> None:
    """Call `reporter` with each line of level error or critical, and its exception or None."""
    global _report_error
    _report_error = reporter


def configure_logging(
    *,
    level: str,
    console: bool,
    environment: str,
    release: str,
) -> None:
    """Send structlog's and the standard library's records through one handler on stdout.

    `level` is a standard level name. Only our own loggers go below INFO: what libraries say there
    holds message bodies, SQL and credentials. `console` asks for the readable form where stdout is
    a terminal.
    """
    IDENTITY.environment, IDENTITY.release = environment, release
    handler = StdoutHandler(sys.stdout)
    handler.setFormatter(_formatter(readable=console and sys.stdout.isatty()))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(logging.getLevelNamesMapping()[level], logging.INFO))
    for name in _OURS:
        logging.getLogger(name).setLevel(level)
    logging.getLogger("botocore").setLevel(logging.WARNING)  # at INFO: where credentials are found
    logging.getLogger("axes").setLevel(logging.ERROR)  # its lines name people; ours do not
    logging.captureWarnings(True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    sys.excepthook = _log_the_end
    threading.excepthook = _log_the_end_of_a_thread


def _formatter(*, readable: bool) -> logging.Formatter:
    shape: list[Processor] = (
        [
            _for_a_person,
            # Its own choice shows the values of variables.
            structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
        ]
        if readable
        else [_as_json]
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            _name_event,
            structlog.contextvars.merge_contextvars,
            _name_event_of_task,
        ],
        processors=[
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _arrange,
            _report,
            structlog.processors.format_exc_info,
            _redact,
            *shape,
        ],
        use_get_message=False,  # a library's message is put together by `third_party_logs`
        pass_foreign_args=True,
    )


def _name_event(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    record: logging.LogRecord = line["_record"]
    if record.levelno > logging.WARNING and _is_no_fault(record):
        record.levelno, record.levelname = logging.WARNING, "WARNING"
    args = line.pop("positional_args", None)
    if third_party_logs.is_ours(record, args):
        return structlog.stdlib.ExtraAdder()(_, __, line)
    line.update(third_party_logs.line_of(record, args))
    return line


def _is_no_fault(record: logging.LogRecord) -> bool:
    """Whether Django calls an error what anybody can send, or what we refuse for the moment: what
    that is for has a line of its own, at its own level.
    """
    if record.name.startswith(_BY_ANYBODY):
        return True
    return record.name == "django.request" and getattr(record, "status_code", 0) in _FOR_NOW


def _name_event_of_task(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    """A task's id is its event's, so what the worker's main process says is found by it too."""
    if "task_id" in line:
        line.setdefault("event_id", line["task_id"])
    return line


def _arrange(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    """Put what all lines have in front, in one order."""
    record: logging.LogRecord = line.pop("_record")
    line.pop("_from_structlog")
    arranged = {
        "timestamp": line.pop("timestamp"),
        "level": record.levelname.lower(),
        "event": line.pop("event"),
        "service": line.pop("service", IDENTITY.service),
        "env": IDENTITY.environment,
        "release": IDENTITY.release,
        "logger": record.name,
    }
    if record.exc_info:
        line.setdefault("exc_info", record.exc_info)
    arranged.update(line)
    return arranged


def _report(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    if (
        _report_error is not None
        and line["level"] in ("error", "critical")
        and line["logger"] not in _REPORTED_ELSEWHERE
    ):
        error = line.get("exc_info")
        _report_error(line, sys.exc_info() if error is True else error or None)
    return line


def _redact(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    if "_aws" in line:  # numbers under names that we chose
        return line
    return {
        name: value if name in _FROM_CODE else redact_field(name, value)
        for name, value in line.items()
    }


def _for_a_person(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
    """Leave out what is the same on each line of a developer's terminal, and what is for AWS."""
    return {name: value for name, value in line.items() if name not in _NOT_FOR_PERSONS}


_encode = json.JSONEncoder(
    separators=(",", ":"),
    default=lambda value: str(value) if isinstance(value, _PLAIN_TYPES) else f"<{_type(value)}>",
).encode


def _as_json(_: WrappedLogger, __: str, line: EventDict) -> str:
    return _encode(line)


def _type(value: object) -> str:
    return type(value).__name__


class StdoutHandler(logging.StreamHandler[Any]):
    """Writes each line at once, so that the lines of several processes do not mix."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 logging's name
        """Say that a line could not be written. logging's own way prints its arguments."""
        error = _type(sys.exc_info()[1])
        line = {"level": "error", "event": "log_line_failed", "logger": record.name, "error": error}
        try:
            self.stream.write(_encode(line) + self.terminator)
            self.flush()
        except (OSError, ValueError):
            pass  # nobody reads our stdout any more


def _log_the_end(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Make one line of the error that ends this process, unless a person sees its terminal.

    Wrong settings need no traceback: their message says what to do. stdout is for what a command
    was asked, so a command's end is written to stderr.
    """
    if issubclass(kind, ImproperlyConfigured) and sys.stderr.isatty():
        sys.stderr.write(
            f"The settings are wrong: {error}\n"
            f"Nothing was started. Here APP_ENV is {IDENTITY.environment or 'not set'}; "
            "each variable is described in .env.example.\n"
        )
    elif sys.stderr.isatty() or not issubclass(kind, Exception):
        sys.__excepthook__(kind, error, traceback)
    else:
        if IDENTITY.service == "manage":
            send_to_stderr()
        trace = None if issubclass(kind, ImproperlyConfigured) else (kind, error, traceback)
        log.critical("process_failed", error=str(error), exc_info=trace)


def send_to_stderr(*, level: int = logging.NOTSET, readable: bool = False) -> None:
    """Keep stdout for results: write all lines from now on to stderr.

    Lines below `level` are left out. `readable` asks for the form for a person.
    """
    for handler in logging.getLogger().handlers:
        if isinstance(handler, StdoutHandler):
            handler.setStream(sys.stderr)
            handler.setLevel(level)
            if readable:
                handler.setFormatter(_formatter(readable=True))


def _log_the_end_of_a_thread(failure: threading.ExceptHookArgs) -> None:
    if failure.exc_value is not None:
        error = (failure.exc_type, failure.exc_value, failure.exc_traceback)
        thread = failure.thread.name if failure.thread else ""
        log.critical("thread_failed", thread=thread, exc_info=error)
