"""Libraries' records get our form, and nothing of a message, a request or a query gets out."""

import json
import logging
from typing import Any

import pytest
from celery.app import trace
from celery.worker import request as worker_request
from celery.worker.consumer import consumer

from skincare.telemetry.third_party_logs import line_of
from tests.log_lines import Line, captured

EVENT = {
    "event_id": "8e4f148d-8a00-5061-a156-54eba481e8a4",
    "event_type": "payment.processed",
    "user_id": "guest-of-the-shop",
    "amount_rupiah": 150000,
}
BODY = json.dumps(EVENT)
TASK = {"name": "payments.payment_processed", "id": EVENT["event_id"]}
CALL = {**TASK, "args": repr((EVENT,)), "kwargs": "{}"}


def told(name: str, template: str, *args: Any, **options: Any) -> Line:
    """The line of one record of a library. Whatever it is given, the event is not in it."""
    with captured() as lines:
        logging.getLogger(name).error(template, *args, **options)
    assert "guest-of-the-shop" not in lines.text
    assert "150000" not in lines.text
    [line] = lines.all()
    return line


def test_a_task_that_succeeded() -> None:
    call = {**CALL, "runtime": 0.01234, "return_value": repr(EVENT)}

    line = told("celery.app.trace", trace.LOG_SUCCESS, call, extra={"data": call})

    assert (line["event"], line["task"], line["task_id"]) == (
        *("task_succeeded", TASK["name"], TASK["id"]),
    )
    assert line["duration_ms"] == 12.3
    assert set(line) & {"args", "kwargs", "data", "message", "return_value"} == set()


@pytest.mark.parametrize(
    ("policy", "event"),
    [
        (trace.log_policy_unexpected, "task_failed"),
        (trace.log_policy_expected, "task_message_kept"),
        (trace.log_policy_internal, "task_failed_in_celery"),
        (trace.log_policy_ignore, "task_ignored"),
        (trace.log_policy_reject, "task_rejected"),
    ],
)
def test_a_task_that_ended_otherwise(policy: trace.log_policy_t, event: str) -> None:
    call = {**CALL, "exc": "LookupError('no order')", "description": policy.description}
    call |= {"hostname": "celery@vm", "traceback": f"…{BODY}", "internal": False}

    line = told("celery.app.trace", policy.format.strip(), call, extra={"data": call})

    assert (line["event"], line["task"], line["task_id"]) == (event, TASK["name"], TASK["id"])
    assert line["error"] == "LookupError('no order')"


@pytest.mark.parametrize(
    ("template", "event"),
    [(trace.LOG_RECEIVED, "task_received"), (trace.LOG_RETRY, "task_retried")],
)
def test_a_task_on_its_way(template: str, event: str) -> None:
    call = {**CALL, "exc": "busy"}

    line = told("skincare.sqs.request", template, call)

    assert (line["event"], line["task_id"]) == (event, TASK["id"])


@pytest.mark.parametrize(("kind", "event"), [("Soft", "soft"), ("Hard", "hard")])
def test_a_time_limit(kind: str, event: str) -> None:
    template = f"{kind} time limit (%ss) exceeded for %s[%s]"
    assert template in _source_of(worker_request)

    line = told("celery.worker.request", template, 90, TASK["name"], TASK["id"])

    assert line["event"] == f"{event}_time_limit_exceeded"
    assert (line["limit_seconds"], line["task"], line["task_id"]) == (90, TASK["name"], TASK["id"])
    assert line["event_id"] == TASK["id"]


@pytest.mark.parametrize(
    ("template", "args"),
    [
        (consumer.UNKNOWN_FORMAT, (BODY,)),
        (consumer.UNKNOWN_TASK_ERROR, (KeyError("x"), BODY, {"argsrepr": BODY}, {"q": BODY})),
        (consumer.INVALID_TASK_ERROR, (ValueError(BODY), BODY)),
        (consumer.MESSAGE_DECODE_ERROR, (ValueError(BODY), "json", "utf-8", BODY, BODY)),
        ("Couldn't convert ETA %r to timestamp: %r. Task: %r", (BODY, ValueError(BODY), EVENT)),
        ("Failed to cancel active request %r after connection loss", (EVENT,)),
        ("Task handler raised error: %r", (ValueError(BODY),)),
        ("TaskPool: Apply %s (args:%s kwargs:%s)", ("f", BODY, repr(EVENT))),
        ("%(name)s was %(what)s", ({"name": "x", "what": BODY},)),
        (b"no text \xff", ()),
    ],
)
def test_no_sentence_of_celery_tells_a_body(template: Any, args: tuple[Any, ...]) -> None:
    line = told("celery.worker.consumer.consumer", template, *args)

    assert line["event"] == "celery_message"


def test_a_sentence_with_too_few_arguments_is_told_without_them() -> None:
    record = logging.LogRecord("celery.x", logging.INFO, "", 1, "%s of %s", (BODY,), None)

    assert line_of(record, record.args)["message"] == "%s of %s"


def test_an_ordinary_sentence_is_told_as_it_is() -> None:
    line = told("gunicorn.error", "Listening at: %s (%s)", "http://127.0.0.1:8000", 42)

    assert line["event"] == "gunicorn_message"
    assert line["message"] == "Listening at: http://127.0.0.1:8000 (42)"


def test_a_worker_that_is_ready() -> None:
    line = told("celery.apps.worker", "%s ready.", "celery@vm")

    assert (line["event"], line["worker"], line["message"]) == (
        *("worker_ready", "celery@vm", "celery@vm ready."),
    )


def test_a_query_is_cut_off() -> None:
    for args in ((), ("/v1/products?q=guest-of-the-shop",)):
        template = "Error handling request %s" if args else "Error at /x?q=guest-of-the-shop 3"
        assert "?" not in told("gunicorn.error", template, *args)["message"]


def test_an_unreadable_request_is_told_without_what_was_read() -> None:
    line = told("gunicorn.error", "Invalid request from ip=10.0.0.7: guest-of-the-shop")

    assert line["event"] == "request_unreadable"
    assert "message" not in line


def test_django_gives_its_whole_request_and_it_is_left_out() -> None:
    request = {"body": "guest-of-the-shop"}
    extra = {"status_code": 404, "request": request}

    line = told("django.request", "%s: %s", "Not Found", "/v1/nothing", extra=extra)

    assert (line["event"], line["message"]) == ("django_message", "Not Found: /v1/nothing")
    assert "request" not in line


def _source_of(module: Any) -> str:
    with open(module.__file__, encoding="utf-8") as source:
        return source.read()
