"""`manage.py prune`: what is old and finished goes, all else stays."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils import timezone

from orders.models import CheckoutRequest
from payments.models import PaymentNotification
from skincare.events import retention
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.outbox import publish
from skincare.events.schema import Event
from tests.integration.events.event_documents import new_event
from tests.integration.operations.conftest import done, failed
from tests.integration.payments.gateways import an_order, midtrans_posts
from tests.unit.payments import midtrans_notifications as midtrans

pytestmark = pytest.mark.django_db

NOTHING = {
    "sent outbox rows": 0,
    "processed events": 0,
    "payment notifications": 0,
    "checkout requests": 0,
    "login attempts": 0,
    "ended sessions": 0,
}


def pruned(*args: str) -> dict[str, int]:
    out = StringIO()
    call_command("prune", "--json", *args, stdout=out, stderr=StringIO())
    return json.loads(out.getvalue())["deleted"]


def published(event: Event, *, sent_days_ago: int) -> Event:
    with transaction.atomic():
        publish(event)
    sent_at = timezone.now() - timedelta(days=sent_days_ago)
    OutboxEvent.objects.filter(event_id=event.event_id).update(sent_at=sent_at)
    return event


def finished_days_ago(event: Event, days: int) -> Event:
    finished_at = timezone.now() - timedelta(days=days)
    ProcessedEvent.objects.filter(event_id=event.event_id).update(finished_at=finished_at)
    return event


@pytest.mark.parametrize("wrong_by", [timedelta(days=-300), timedelta(days=300)])
def test_what_is_old_is_so_by_the_databases_clock(
    wrong_by: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    young = done(published(new_event(), sent_days_ago=29))
    old = done(published(new_event(), sent_days_ago=31))
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now + wrong_by)

    assert pruned() == {**NOTHING, "sent outbox rows": 1}

    assert set(OutboxEvent.objects.values_list("event_id", flat=True)) == {young.event_id}
    assert ProcessedEvent.objects.filter(event_id=old.event_id).exists()


def test_an_outbox_row_goes_once_its_event_is_finished_and_old() -> None:
    done(published(new_event(), sent_days_ago=31))
    kept = [
        done(published(new_event(), sent_days_ago=29)),  # young
        failed(published(new_event(), sent_days_ago=31)),  # not finished
        published(new_event(), sent_days_ago=31),  # never arrived: this is its only copy
    ]

    assert pruned() == {**NOTHING, "sent outbox rows": 1}
    assert set(OutboxEvent.objects.values_list("event_id", flat=True)) == {
        event.event_id for event in kept
    }


def test_a_processed_event_goes_after_its_outbox_row() -> None:
    gone = finished_days_ago(done(published(new_event(), sent_days_ago=100)), 91)
    foreign = finished_days_ago(done(new_event()), 91)  # of another producer
    young = finished_days_ago(done(new_event()), 89)
    resent = finished_days_ago(done(published(new_event(), sent_days_ago=1)), 91)
    unfinished = failed(new_event())
    ProcessedEvent.objects.filter(event_id=unfinished.event_id).update(
        claimed_at=timezone.now() - timedelta(days=1000)
    )

    assert pruned() == {**NOTHING, "sent outbox rows": 1, "processed events": 2}
    left = set(ProcessedEvent.objects.values_list("event_id", flat=True))
    assert left == {event.event_id for event in (young, resent, unfinished)}
    assert left.isdisjoint({gone.event_id, foreign.event_id})


def test_a_dry_run_counts_and_deletes_nothing() -> None:
    done(published(new_event(), sent_days_ago=31))

    assert pruned("--dry-run") == {**NOTHING, "sent outbox rows": 1}
    assert OutboxEvent.objects.count() == 1


def test_rows_go_in_small_transactions() -> None:
    for _ in range(5):
        done(published(new_event(), sent_days_ago=31))
    rule = retention.RULES[0]

    assert list(retention.delete_expired(rule, batch=2)) == [2, 2, 1]


@pytest.mark.django_db(transaction=True)
def test_rows_that_somebody_has_locked_wait_for_the_next_time() -> None:
    events = [done(published(new_event(), sent_days_ago=31)) for _ in range(2)]
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(
                "SELECT FROM events_outboxevent WHERE event_id = %s FOR UPDATE",
                [events[0].event_id],
            )
            assert pruned() == {**NOTHING, "sent outbox rows": 1}
            cursor.execute("ROLLBACK")  # closing alone does not wait until the lock is gone
    finally:
        other.close()

    assert OutboxEvent.objects.get().event_id == events[0].event_id
    assert pruned() == {**NOTHING, "sent outbox rows": 1}


@pytest.fixture
def notification() -> PaymentNotification:
    """A settlement that was applied, three years ago; there is another one of today."""
    order = an_order()
    midtrans_posts(midtrans.card("settlement", order_id=str(order.pk)))
    return an_old(PaymentNotification.objects.get())


def an_old(row: PaymentNotification, **changes: Any) -> PaymentNotification:
    """A copy of the notification, received long ago. What was told cannot be made older."""
    values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    values |= {
        "id": None,
        "identity": f"old-{PaymentNotification.objects.count()}",
        "received_at": timezone.now() - timedelta(days=1000),
        **changes,
    }
    return PaymentNotification.objects.create(**values)


def test_a_decided_notification_goes(notification: PaymentNotification) -> None:
    assert pruned() == {**NOTHING, "payment notifications": 1}
    assert PaymentNotification.objects.get() != notification


def delete_notifications(*, permitted: bool = False) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        if permitted:
            cursor.execute("SET LOCAL payments.retention = 'on'")
        cursor.execute("DELETE FROM payments_paymentnotification")


@pytest.mark.django_db(transaction=True)
def test_the_permit_to_delete_ends_with_the_transaction(notification: PaymentNotification) -> None:
    assert pruned() == {**NOTHING, "payment notifications": 1}
    an_old(PaymentNotification.objects.get())

    with pytest.raises(IntegrityError, match="append-only"):
        delete_notifications()


def test_the_permit_is_for_old_rows(notification: PaymentNotification) -> None:
    with pytest.raises(IntegrityError, match="append-only"):
        delete_notifications(permitted=True)


@pytest.mark.parametrize(
    "changes", [{"outcome": "held"}, {"outcome": "unmatched", "payment_id": None}]
)
def test_the_permit_is_not_for_what_waits_for_a_person(
    changes: dict[str, Any], notification: PaymentNotification
) -> None:
    waiting = an_old(notification, **changes)

    assert pruned() == {**NOTHING, "payment notifications": 1}
    assert waiting in PaymentNotification.objects.all()
    with (
        pytest.raises(IntegrityError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("SET LOCAL payments.retention = 'on'")
        cursor.execute("DELETE FROM payments_paymentnotification WHERE id = %s", [waiting.pk])


def test_an_old_idempotency_key_is_forgotten() -> None:
    order = an_order()
    young = an_order()
    CheckoutRequest.objects.filter(order=order).update(
        created_at=timezone.now() - timedelta(days=31)
    )

    assert pruned() == {**NOTHING, "checkout requests": 1}
    assert CheckoutRequest.objects.get().order == young


def test_wrong_passwords_and_ended_sessions_go_after_a_month() -> None:
    client, now = Client(), timezone.now()
    for address in ("203.0.113.7", "203.0.113.8"):
        form = {"username": "ayu", "password": "wrong"}
        client.post("/admin/login/", form, REMOTE_ADDR=address)
    young, old = AccessAttempt.objects.order_by("pk")
    AccessAttempt.objects.filter(pk=old.pk).update(attempt_time=now - timedelta(days=31))
    for key, days in (("over", 31), ("just-over", 1), ("open", -1)):
        Session.objects.create(
            session_key=key, session_data="", expire_date=now - timedelta(days=days)
        )

    assert pruned() == {**NOTHING, "login attempts": 1, "ended sessions": 1}
    assert AccessAttempt.objects.get() == young
    assert set(Session.objects.values_list("pk", flat=True)) == {"just-over", "open"}
