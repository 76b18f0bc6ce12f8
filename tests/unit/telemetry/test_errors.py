"""What Sentry gets: ids, one fingerprint for one fault, and nothing about persons."""

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sentry_sdk
import structlog
from celery import Celery, Task, signals
from celery.app import trace
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from skincare import urls
from skincare.events.task import EventTask
from skincare.sqs.outcome import RetryLater, Terminal
from skincare.telemetry import errors, logs

# Put together here, so that they are not in the source lines that a report quotes.
SECRET = "-".join(["not", "to", "be", "told"])
GUEST = "-".join(["guest", "of", "the", "shop"])
EMAIL = "@".join(["ayu", "mail.example"])
EVENT = {
    "event_id": "8e4f148d-8a00-5061-a156-54eba481e8a4",
    "event_type": "payment.processed",
    "order_id": "638739ef-51c4-43b8-9633-b193a9daa559",
    "payment_id": "p-1",
    "request_id": "r-1",
    "user_id": GUEST,
}


class Recorder(Transport):
    """Keeps what would be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.reports: list[dict[str, Any]] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        for item in envelope.items:
            report = item.get_event()
            assert report is not None, "nothing but errors is sent"
            self.reports.append(json.loads(json.dumps(report)))


@pytest.fixture
def reports() -> Iterator[list[dict[str, Any]]]:
    recorder = Recorder()
    errors.start_sentry(
        dsn="http://key@127.0.0.1:9/1",
        environment="test",
        release="1.2.3",
        transport=recorder,
    )
    yield recorder.reports
    sentry_sdk.init(dsn="", default_integrations=False, auto_enabling_integrations=False)
    logs._report_error = None
    signals.task_failure.disconnect(dispatch_uid="skincare.telemetry.errors")


@pytest.fixture
def run_task() -> Iterator[Callable[..., None]]:
    """Runs a function as the task of an event, traced by Celery as a worker does."""

    def run(function: Callable[[], None], *, event: dict[str, Any] = EVENT) -> None:
        app = Celery("reports", set_as_current=False)

        @app.task(name="payments.payment_processed", bind=True, base=EventTask, shared=False)
        def task(self: Task, document: dict[str, Any]) -> None:
            function()

        tracer = trace.build_tracer("payments.payment_processed", task, app=app)
        request = {"receive_count": 2, "delivery_info": {"routing_key": "events"}}
        tracer(event["event_id"], (event,), {}, request)

    yield run
    structlog.contextvars.clear_contextvars()


def fail(text: str = f"for {EMAIL}") -> None:
    secret = SECRET
    raise ZeroDivisionError(f"{text} {len(secret)}")


def test_a_tasks_error_has_the_ids_as_tags_and_no_person(
    reports: list[dict[str, Any]], run_task: Callable[..., None]
) -> None:
    run_task(fail)

    [report] = reports
    assert (report["environment"], report["release"]) == ("test", "1.2.3")
    assert report["tags"] == {
        "service": "manage",
        "task": "payments.payment_processed",
        "queue": "events",
        "receive_count": "2",
        **{name: EVENT[name] for name in EVENT if name != "user_id"},
    }
    [error] = report["exception"]["values"]
    assert (error["type"], error["value"]) == ("ZeroDivisionError", "for [redacted] 14")
    assert all("vars" not in frame for frame in error["stacktrace"]["frames"])
    text = json.dumps(report)
    assert [word for word in (GUEST, SECRET, EMAIL) if word in text] == []
    assert set(report) & {"request", "user", "extra", "breadcrumbs", "contexts", "modules"} == set()


def test_a_redelivered_failure_is_one_issue_and_so_is_the_same_fault_of_other_events(
    reports: list[dict[str, Any]], run_task: Callable[..., None]
) -> None:
    for receive in range(5):
        run_task(lambda receive=receive: fail(f"try {receive}"))
    run_task(fail, event={**EVENT, "event_id": "another"})

    assert len(reports) == 6
    assert len({tuple(report["fingerprint"]) for report in reports}) == 1


def test_other_faults_are_other_issues(
    reports: list[dict[str, Any]], run_task: Callable[..., None]
) -> None:
    def elsewhere() -> None:
        raise ZeroDivisionError

    def otherwise() -> None:
        raise LookupError

    run_task(fail)
    run_task(elsewhere)
    run_task(otherwise)
    run_task(fail, event={**EVENT, "event_type": "payment.refunded"})

    assert len({tuple(report["fingerprint"]) for report in reports}) == 4


def test_what_will_be_tried_again_is_not_reported_and_what_goes_to_the_dlq_is_with_its_cause(
    reports: list[dict[str, Any]], run_task: Callable[..., None]
) -> None:
    def busy() -> None:
        raise RetryLater("another worker holds the event")

    def terminal() -> None:
        try:
            fail()
        except ZeroDivisionError as error:
            raise Terminal("never") from error

    run_task(busy)
    assert reports == []
    run_task(terminal)
    assert [r["exception"]["values"][-1]["type"] for r in reports] == ["ZeroDivisionError"]
    assert reports[0]["tags"]["event_id"] == EVENT["event_id"]


def test_an_error_line_is_reported_with_its_own_ids(reports: list[dict[str, Any]]) -> None:
    transport = logging.getLogger("skincare.sqs.consumer")
    for receive_count in (1, 2):
        transport.error(
            "message_quarantined", extra={"queue": "events", "receive_count": receive_count}
        )
    transport.warning("poll_failed")

    assert [report["message"] for report in reports] == ["message_quarantined"] * 2
    assert reports[1]["tags"] == {"service": "manage", "queue": "events", "receive_count": "2"}
    assert {tuple(report["fingerprint"]) for report in reports} == {
        ("skincare.sqs.consumer", "message_quarantined")
    }


def test_a_line_with_an_error_is_reported_as_that_error(reports: list[dict[str, Any]]) -> None:
    log = structlog.get_logger("payments.api")
    try:
        fail()
    except ZeroDivisionError as error:
        log.error("notification_not_stored", provider="xendit", exc_info=error)
        log.exception("notification_not_stored", provider="xendit")

    assert [r["exception"]["values"][-1]["type"] for r in reports] == ["ZeroDivisionError"]


def a_view_that_fails(request: HttpRequest) -> HttpResponse:
    fail(f"for {request.POST['email']}")
    raise AssertionError


urlpatterns = [*urls.urlpatterns, path("fails", a_view_that_fails)]


@override_settings(ROOT_URLCONF=__name__)
def test_a_requests_error_has_its_id_and_neither_query_nor_body_nor_headers(
    reports: list[dict[str, Any]],
) -> None:
    client = Client(raise_request_exception=False)

    response = client.post(
        f"/fails?q={GUEST}",
        data={"email": EMAIL, "note": SECRET},
        headers={
            "X-Request-ID": "r-2",
            "X-Callback-Token": SECRET,
            "Cookie": f"sessionid={SECRET}",
            "User-Agent": GUEST,
        },
    )

    assert response.status_code == 500
    [report] = reports
    assert report["tags"] == {"service": "manage", "request_id": "r-2"}
    assert report["transaction"] == "/fails"
    assert set(report) & {"request", "user", "extra", "breadcrumbs", "contexts", "modules"} == set()
    assert report["exception"]["values"][-1]["value"] == "for [redacted] 14"
    text = json.dumps(report)
    assert [w for w in (GUEST, SECRET, EMAIL, "127.0.0.1") if w in text] == []
