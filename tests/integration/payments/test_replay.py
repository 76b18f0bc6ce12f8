"""Putting a stored event back on the queue."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.utils import timezone

from orders.models import OrderLine
from payments.replay import AlreadyFinished, StillInProgress, replay, replay_failed
from skincare.events.claim import Claim, claim
from skincare.events.consumer import EventOutcome, process
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.schema import parse_event
from skincare.sqs.outcome import Terminal
from tests.integration.orders.shop import numbers
from tests.integration.payments.gateways import an_order, consume, published

pytestmark = pytest.mark.django_db


@pytest.fixture
def event() -> OutboxEvent:
    """The `payment.processed` of a sandbox order; it was sent to the queue."""
    [event] = published(an_order("sandbox"))
    return sent(event)


def sent(event: OutboxEvent) -> OutboxEvent:
    OutboxEvent.objects.filter(pk=event.pk).update(sent_at=timezone.now())
    event.refresh_from_db()
    return event


def is_unsent(event: OutboxEvent) -> bool:
    event.refresh_from_db()
    return event.sent_at is None


def bad_document() -> dict[str, object]:
    """An event of another producer that no payment belongs to."""
    order = an_order()
    return {
        "event_id": f"pos-{order.number}",
        "event_type": "payment.processed",
        "order_id": str(order.pk),
        "payment_id": "pay-1",
        "user_id": "guest",
        "amount_rupiah": 150000,
        "created_at": "2026-11-11T00:00:00+07:00",
    }


def fail(document: dict[str, object]) -> str:
    with pytest.raises(Terminal):
        process(document, receive_count=1, worker="worker-1")
    return str(document["event_id"])


def test_an_event_that_was_never_processed(event: OutboxEvent) -> None:
    replayed = replay(event.event_id)

    assert str(replayed) == (
        f"payment.processed {event.event_id}: it was never processed: effects and email happen now"
    )
    assert is_unsent(event)


def test_a_finished_event_is_refused_with_what_force_would_repeat(event: OutboxEvent) -> None:
    consume(event)

    with pytest.raises(AlreadyFinished) as refusal:
        replay(event.event_id)

    assert str(refusal.value) == (
        f"{event.event_id} is finished; force=True would repeat it: "
        "its effects stay done once; its email is sent again, under the same Message-ID"
    )
    assert not is_unsent(event)


def test_a_finished_event_with_force_repeats_only_the_email(event: OutboxEvent) -> None:
    consume(event)
    product = OrderLine.objects.get(order_id=event.order_id).product
    before = numbers(product)

    replay(event.event_id, force=True)

    assert is_unsent(event)
    assert consume(event) is EventOutcome.DONE
    assert numbers(product) == before
    first, second = mail.outbox
    assert first.extra_headers["Message-ID"] == second.extra_headers["Message-ID"]
    assert first.body == second.body


def test_a_failed_event_of_another_producer_is_put_into_the_outbox() -> None:
    event_id = fail(bad_document())

    replayed = replay(event_id)

    assert replayed.repeats == "effects and email happen now"
    again = OutboxEvent.objects.get(event_id=event_id)
    assert again.sent_at is None
    assert again.payload["payment_id"] == "pay-1"


def test_an_event_that_a_worker_holds_is_refused(event: OutboxEvent) -> None:
    claim(parse_event(event.payload), worker="worker-9")

    for force in (False, True):
        with pytest.raises(StillInProgress, match="worker-9 until"):
            replay(event.event_id, force=force)

    assert not is_unsent(event)


@pytest.mark.parametrize(
    ("since", "expected"),
    [(lambda: timezone.now() - timedelta(hours=1), 2), (timezone.now, 0)],
    ids=["in the last hour", "from now on"],
)
def test_all_that_failed_since(
    since: Callable[[], datetime], expected: int, event: OutboxEvent
) -> None:
    consume(event)
    failed = [fail(bad_document()) for _ in range(2)]

    replayed = replay_failed(since=since())

    assert [one.event_id for one in replayed] == failed[:expected]
    assert OutboxEvent.objects.filter(event_id__in=failed, sent_at=None).count() == expected
    assert not is_unsent(event)
    assert ProcessedEvent.objects.filter(status="done").count() == 1


@pytest.mark.parametrize("ends", [False, True], ids=["a worker holds it", "it is finished"])
def test_an_event_that_a_worker_takes_meanwhile_stops_no_other(ends: bool) -> None:
    failed = [fail(bad_document()) for _ in range(3)]

    def take_the_second(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "FOR UPDATE" in sql and failed[0] in params:
            second = ProcessedEvent.objects.get(event_id=failed[1])
            held = claim(parse_event(second.payload), worker="worker-9")
            assert isinstance(held, Claim)
            if ends:
                held.finish()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(take_the_second):
        replayed = replay_failed(since="1h")

    assert [one.event_id for one in replayed] == [failed[0], failed[2]]
    assert not OutboxEvent.objects.filter(event_id=failed[1]).exists()
