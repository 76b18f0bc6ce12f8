"""What a real gunicorn and a real worker write and report while the shop is used and abused."""

import json

import pytest

from tests.integration.telemetry.conftest import Watched
from tests.log_lines import FIELDS, embedded_metric_problems

# The first one starts the whole shop.
pytestmark = pytest.mark.timeout(600)


def test_every_line_is_one_json_object_with_the_fields_of_all(watched: Watched) -> None:
    assert len(watched.web) > 30
    assert len(watched.worker) > 30
    assert [line for line in watched.lines if not set(line) >= FIELDS] == []
    assert {(line["env"], line["release"]) for line in watched.lines} == {("development", "v1.2.3")}
    assert {line["service"] for line in watched.web} == {"api", "relay"}
    # What a worker's handler publishes, a relay of the same process sends.
    assert {line["service"] for line in watched.worker} == {"worker", "relay"}
    assert {line["event"] for line in watched.lines} >= {"gunicorn_message", "worker_ready"}


def test_no_person_and_no_secret_is_in_any_line_or_report(watched: Watched) -> None:
    assert len(watched.private) >= 9
    reports = json.dumps(watched.reports)

    assert [word for word in watched.private if word in watched.text] == []
    assert [word for word in watched.private if word in reports] == []
    assert "[redacted]" not in watched.text, "our own lines name nothing private to begin with"
    for field in ("gross_amount", "signature_key", "amount_rupiah", "argsrepr", "user_id"):
        assert f'{field}"' not in watched.text
        assert f"{field}'" not in watched.text


def test_the_id_of_a_request_is_on_the_lines_of_all_that_it_caused(watched: Watched) -> None:
    served = {line["request_id"]: line for line in watched.of("request_served")}
    checkouts = [
        line
        for line in watched.of("order_placed")
        if served[line["request_id"]]["path"] == "/v1/checkout"
    ]
    assert len(checkouts) == 6
    for checkout in checkouts:
        done = [
            line
            for line in watched.of("event_done")
            if line.get("request_id") == checkout["request_id"]
        ]
        assert [(line["service"], line["event_type"], line["order_id"]) for line in done] == [
            ("worker", "order.confirmed", checkout["order_id"])
        ]


def test_the_lines_of_a_task_have_its_ids_celerys_own_included(watched: Watched) -> None:
    succeeded = watched.of("task_succeeded")

    assert len(succeeded) == len(watched.of("event_done")) == 31
    for line in succeeded:
        assert line["task"] in ("orders.order_confirmed", "payments.payment_processed")
        assert line["event_id"] == line["task_id"]
        assert line["queue"] == "skincare-order-events"
        assert (line["receive_count"], line["duration_ms"] > 0) == (1, True)
        assert line["order_id"]
    paid = [line for line in watched.of("event_done") if line["event_type"] == "payment.processed"]
    assert all(line["payment_id"] for line in paid)


def test_each_request_has_one_line_without_its_query(watched: Watched) -> None:
    served = watched.of("request_served")

    assert {line["status"] for line in served} >= {200, 201, 403, 404, 413, 422}
    assert [line for line in served if "?" in line["path"]] == []
    assert {"/v1/checkout", "/v1/webhooks/midtrans"} <= {line["path"] for line in served}
    assert "/readyz" not in {line["path"] for line in served if line["status"] == 200}
    assert len(watched.of("request_unreadable")) == 2


def test_the_metrics_follow_the_rules_of_cloudwatch(watched: Watched) -> None:
    told = watched.of("metrics")

    assert len(told) > 10
    assert [problem for line in told for problem in embedded_metric_problems(line)] == []
    dimensions = {
        name
        for line in told
        for directive in line["_aws"]["CloudWatchMetrics"]
        for names in directive["Dimensions"]
        for name in names
    }
    assert dimensions <= {"service", "environment", "event_type", "provider"}


def test_the_metrics_count_what_happened(watched: Watched) -> None:
    assert watched.total("OrdersCreated") == 6
    assert watched.total("PaymentProcessed") == 5  # one of them was notified three times
    paid = {line["order_id"] for line in watched.of("order_moved") if line["to_status"] == "paid"}
    placed = [line for line in watched.of("order_placed") if line["order_id"] in paid]
    assert watched.total("PaymentAmountRupiah") == sum(line["total_rupiah"] for line in placed)
    assert watched.total("WebhooksRejected") == 4
    assert watched.total("EventsQuarantined") == 2
    assert watched.total("EventsFailed") == 5  # one event, at each of its receives
    assert watched.total("PaymentsHeld") == 2  # paid twice; a forged status
    latencies = [line for line in watched.of("metrics") if "EventLatencySeconds" in line]
    assert len(latencies) == 31
    backlog = [line for line in watched.of("metrics") if "OutboxUnsent" in line]
    assert {line["service"] for line in backlog} == {"relay"}
    assert all("OutboxOldestAgeSeconds" in line for line in backlog)


def test_a_failure_in_a_forked_child_is_reported_as_one_issue(watched: Watched) -> None:
    failures = [
        report
        for report in watched.reports
        if report.get("tags", {}).get("event_id") == watched.failing_event_id
    ]

    assert sorted(report["tags"]["receive_count"] for report in failures) == list("12345")
    assert len({tuple(report["fingerprint"]) for report in failures}) == 1
    for report in failures:
        assert report["exception"]["values"][-1]["type"] == "OrderNotFound"
        assert report["tags"]["service"] == "worker"
        assert report["tags"]["request_id"] == "request-of-the-failure"
        assert (report["release"], report["environment"]) == ("v1.2.3", "development")
    assert [report for report in watched.reports if "unexpected" in report] == []


def test_whoever_starts_the_shop_keeps_an_environment_of_its_own(watched: Watched) -> None:
    assert watched.left_the_environment_alone
