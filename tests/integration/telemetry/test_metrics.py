"""What is counted happened: after the commit, once, and not at all where nothing was changed."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone

from orders.checkout import Item, place_order
from orders.exceptions import NotEnoughStock
from orders.models import Order
from skincare.events import gauges, outbox
from skincare.events.consumer import process
from skincare.events.models import OutboxEvent
from skincare.sqs.outcome import Terminal
from skincare.telemetry import metrics
from skincare.telemetry.transport_metrics import TransportMetrics
from tests.integration.events.event_documents import event_document
from tests.integration.orders.shop import a_product
from tests.integration.payments.gateways import (
    TOTAL,
    an_order,
    consume,
    midtrans_posts,
    published,
)
from tests.log_lines import Lines, captured, embedded_metric_problems
from tests.unit.payments import midtrans_notifications as midtrans

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lines() -> Iterator[Lines]:
    with captured() as written:
        yield written
        for line in written.of("metrics"):
            assert embedded_metric_problems(line) == []


def told(lines: Lines, name: str) -> list[tuple[float, str]]:
    """The values of a metric, each with its event type or provider."""
    return [
        (*line[name], line.get("provider") or line.get("event_type", ""))
        for line in lines.metric(name)
    ]


def test_an_order_is_counted_once_for_its_idempotency_key(lines: Lines) -> None:
    product = a_product()
    for _ in range(3):
        place_order(
            items=[Item(product.sku, 1)],
            email="sari@example.com",
            payment_method="midtrans",
            idempotency_key="the-same",
        )

    assert told(lines, "OrdersCreated") == [(1.0, "midtrans")]


def test_an_order_that_is_refused_or_rolled_back_is_not_counted(lines: Lines) -> None:
    with pytest.raises(NotEnoughStock):
        place_order(
            items=[Item(a_product(stocked=1).sku, 2)],
            email="sari@example.com",
            payment_method="midtrans",
            idempotency_key="refused",
        )
    with pytest.raises(DatabaseError), transaction.atomic():
        an_order()
        raise DatabaseError

    assert not Order.objects.exists()
    assert told(lines, "OrdersCreated") == []


def test_nothing_is_told_before_the_commit(lines: Lines) -> None:
    with transaction.atomic():
        an_order()
        assert lines.of("metrics") == []

    assert told(lines, "OrdersCreated") == [(1.0, "midtrans")]


def test_a_payment_is_counted_when_its_order_is_paid_however_often_it_is_told(
    lines: Lines,
) -> None:
    order = an_order()
    for _ in range(3):
        midtrans_posts(midtrans.bank_transfer(order_id=str(order.pk)))
    [event] = published(order)
    for _ in range(3):
        consume(event)

    assert told(lines, "PaymentProcessed") == [(1.0, "midtrans")]
    assert told(lines, "PaymentAmountRupiah") == [(float(TOTAL), "midtrans")]
    assert told(lines, "DuplicateEvents") == [(1.0, "payment.processed")] * 2
    [(latency, event_type)] = told(lines, "EventLatencySeconds")
    assert event_type == "payment.processed"
    assert latency >= 0
    assert told(lines, "EventsFailed") == []


def test_a_payment_that_is_held_is_counted_once(lines: Lines) -> None:
    order = an_order()
    for amount in ("1.00", "2.00"):
        midtrans_posts(midtrans.bank_transfer(order_id=str(order.pk), gross_amount=amount))

    assert told(lines, "PaymentsHeld") == [(1.0, "midtrans")]
    assert told(lines, "PaymentProcessed") == []


def test_webhooks_that_are_refused_are_counted_by_provider(lines: Lines) -> None:
    forged = midtrans.bank_transfer() | {"signature_key": "0" * 128}
    Client().post("/v1/webhooks/midtrans", data=forged, content_type="application/json")
    Client().post(
        "/v1/webhooks/xendit",
        data={},
        content_type="application/json",
        headers={"x-callback-token": "forged"},
    )

    assert [provider for _, provider in told(lines, "WebhooksRejected")] == ["midtrans", "xendit"]


def test_each_failed_try_is_counted_and_what_others_invent_is_one_type(lines: Lines) -> None:
    document = event_document(event_type="payment.processed", payment_id=str(uuid4()))
    for receive_count in (1, 2):
        with pytest.raises(Terminal):
            process(document, receive_count=receive_count, worker="w")
    with pytest.raises(Terminal):
        process({"event_id": "x"}, receive_count=1, worker="w")
    process(event_document(event_type="somebody.invented"), receive_count=1, worker="w")

    assert told(lines, "EventsFailed") == [
        (1.0, "payment.processed"),
        (1.0, "payment.processed"),
        (1.0, "unknown"),
    ]


def test_a_message_that_comes_back_to_quarantine_is_counted_once(lines: Lines) -> None:
    transport = TransportMetrics()
    for message_id in ("a", "b", "a", "a"):
        transport.message_quarantined(message_id)
    transport.poll_failed("events")
    transport.poll_failed("events")
    for action in ("DeleteMessageBatch", "ChangeMessageVisibilityBatch"):
        transport.acknowledgement_denied(action)

    assert told(lines, "EventsQuarantined") == [(1.0, "")] * 2
    assert told(lines, "PollFailures") == [(1.0, "")] * 2
    assert told(lines, "DeletesDenied") == [(1.0, "")]


def test_a_task_whose_process_ends_is_a_failure(lines: Lines) -> None:
    TransportMetrics().task_lost("payments.x")

    assert told(lines, "EventsFailed") == [(1.0, "")]


def test_the_transports_events_are_counted_without_a_database_connection(lines: Lines) -> None:
    connection.close()

    metrics.count("PollFailures")

    assert connection.connection is None
    assert told(lines, "PollFailures") == [(1.0, "")]


def test_the_backlog_is_told_with_the_age_of_the_oldest(lines: Lines) -> None:
    gauges.report_backlog()
    an_order()
    an_order()
    hour_ago = timezone.now() - timedelta(hours=1)
    OutboxEvent.objects.filter(pk=OutboxEvent.objects.earliest("pk").pk).update(
        created_at=hour_ago, next_attempt_at=timezone.now(), send_attempts=3
    )
    gauges.report_backlog()

    assert told(lines, "OutboxUnsent") == [(0.0, ""), (2.0, "")]
    (nothing, _), (oldest, _) = told(lines, "OutboxOldestAgeSeconds")
    assert nothing == 0
    assert 3600 <= oldest < 3660


def test_an_old_event_that_is_sent_anew_does_not_look_stuck(lines: Lines) -> None:
    an_order()
    sent = OutboxEvent.objects.get()
    long_ago = timezone.now() - timedelta(days=3)
    OutboxEvent.objects.update(
        created_at=long_ago, next_attempt_at=long_ago, sent_at=long_ago, send_attempts=1
    )

    outbox.resend(sent.event_id)
    gauges.report_backlog()

    assert told(lines, "OutboxUnsent") == [(1.0, "")]
    assert told(lines, "OutboxOldestAgeSeconds")[0][0] < 60
