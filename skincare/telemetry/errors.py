"""Errors go to Sentry: one issue for one fault, with the ids to look it up, no personal data.

Started in the settings, so in every process; a forked child's client starts its own thread when it
first sends. A report has the traceback without the values of variables, and the ids that
its log lines carry, where the rest can be read.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import sentry_sdk
import structlog
from celery import signals
from sentry_sdk.integrations.atexit import AtexitIntegration
from sentry_sdk.integrations.celery import CeleryIntegration
from sentry_sdk.integrations.dedupe import DedupeIntegration
from sentry_sdk.integrations.django import DjangoIntegration
from sentry_sdk.integrations.excepthook import ExcepthookIntegration

from skincare.sqs.outcome import Terminal
from skincare.telemetry.identity import current_service
from skincare.telemetry.logs import report_errors_to
from skincare.telemetry.redaction import redact

if TYPE_CHECKING:
    from sentry_sdk.transport import Transport
    from sentry_sdk.types import Event, Hint

Error = BaseException | tuple[type[BaseException], BaseException, TracebackType | None] | None

#: Fields of the log lines that are tags of a report.
_TAGS: Final = (
    *("event_id", "event_type", "order_id", "payment_id", "request_id"),
    *("task", "queue", "receive_count"),
)
#: The parts of a report that are kept. Others may hold headers, arguments, users or addresses.
_KEPT: Final = frozenset(
    (
        *("event_id", "timestamp", "platform", "level", "message", "exception"),
        *("fingerprint", "transaction", "environment", "release", "server_name", "sdk"),
    )
)


def start_sentry(
    *,
    dsn: str,
    environment: str,
    release: str,
    transport: "type[Transport] | Transport | None" = None,
) -> None:
    """Report errors of this process and its later children to `dsn`."""
    sentry_sdk.init(
        dsn=dsn,
        environment=environment,
        release=release,
        transport=transport,
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=[
            DjangoIntegration(),
            CeleryIntegration(propagate_traces=False),
            AtexitIntegration(callback=lambda pending, timeout: None),  # its own prints
            DedupeIntegration(),
            ExcepthookIntegration(),
        ],
        in_app_include=["skincare", "orders", "payments"],
        include_local_variables=False,
        max_request_body_size="never",
        max_breadcrumbs=0,
        auto_session_tracking=False,
        before_send=prepare,
    )
    signals.task_failure.connect(_report_terminal, dispatch_uid="skincare.telemetry.errors")
    report_errors_to(_report_line)


def prepare(report: "Event", hint: "Hint") -> "Event":
    """Return what is sent of `report`: see the top of this file."""
    kept: dict[str, Any] = {name: value for name, value in report.items() if name in _KEPT}
    known = structlog.contextvars.get_contextvars()
    kept["tags"] = {
        "service": current_service(),
        **{name: str(known[name]) for name in _TAGS if known.get(name) not in (None, "")},
    }
    for value in (kept.get("exception") or {}).get("values", ()):
        value["value"] = redact(str(value.get("value", "")))
    if "task" in known and "exc_info" in hint and "fingerprint" not in kept:
        kept["fingerprint"] = _fingerprint(kept, known)
    return kept  # type: ignore[return-value]


def _fingerprint(report: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    """Return what makes two failures of events the same issue: the type of the event, the error,
    and where it was raised. Not the event, nor how often it was received, nor the error's words."""
    error = report["exception"]["values"][-1]
    frames = (error.get("stacktrace") or {}).get("frames") or [{}]
    own = [frame for frame in frames if frame.get("in_app")] or frames
    place = f"{own[-1].get('module')}.{own[-1].get('function')}"
    return [str(known.get("event_type", known["task"])), str(error.get("type")), place]


def _report_terminal(*, exception: BaseException, **_: Any) -> None:
    """Report what sent an event to the dead-letter queue; tasks raise it as an expected error."""
    if isinstance(exception, Terminal) and exception.__cause__ is not None:
        sentry_sdk.capture_exception(exception.__cause__)


def _report_line(line: Mapping[str, Any], error: Error) -> None:
    fields = {name: line[name] for name in _TAGS if name in line}
    with structlog.contextvars.bound_contextvars(**fields), sentry_sdk.new_scope() as scope:
        scope.fingerprint = [line["logger"], line["event"]]
        if error is not None:
            sentry_sdk.capture_exception(error)
        else:
            sentry_sdk.capture_message(line["event"], level=line["level"])
