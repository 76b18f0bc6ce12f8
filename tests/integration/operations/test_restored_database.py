"""The database put back to an earlier time, and brought up to date by the runbook's words alone."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core import mail
from django.db import connection
from django.test import Client
from django.utils import timezone

from orders.models import Order
from payments import unmatched
from payments.models import PaymentNotification
from payments.reconciliation import reconcile, since
from skincare.events import relay
from skincare.events.consumer import process
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.routing import adapt
from skincare.events.schema import parse_event
from skincare.local.gateways.simulator import Simulator
from skincare.operations.models import WorkerReport
from skincare.sqs.decoder import decode
from skincare.sqs.outcome import Terminal
from tests.integration.operations.conftest import Letters, as_celery
from tests.integration.operations.sending import send_to
from tests.integration.operations.test_runbook_faults import run, steps
from tests.integration.payments import test_refunding as refunding
from tests.integration.payments.gateways import an_order, published
from tests.integration.payments.test_confirmation import work
from tests.integration.payments.test_lost_webhooks import kept_at_the_gateway, kept_by_the_shop
from tests.integration.payments.test_paying import buyer_pays, pay

pytestmark = pytest.mark.django_db(transaction=True)

HEADING = "The database was restored to an earlier time"
PART = 50_000  # rupiah


@pytest.fixture(autouse=True)
def sending_app(letters: Letters, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the relay sends by goes to this test's queue."""
    send_to(
        letters.pair.url,
        endpoint_url=settings.SQS_ENDPOINT_URL,
        settings=settings,
        monkeypatch=monkeypatch,
    )


@pytest.fixture
def restore_point() -> Iterator["RestorePoint"]:
    point = RestorePoint()
    yield point
    point.forget()


class RestorePoint:
    """A copy of the whole database, sequences included, that can be put in its place."""

    def __init__(self) -> None:
        self._name = connection.settings_dict["NAME"]
        self._copy = f"{self._name}_earlier"

    def keep(self) -> None:
        self.forget()
        self._execute(
            # What an earlier test has left open: a database in use is not copied.
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"  # noqa: S608 our own name
            f" WHERE datname = '{self._name}'",
            f"CREATE DATABASE {self._copy} TEMPLATE {self._name}",
        )

    def put_back(self) -> None:
        self._execute(
            f"DROP DATABASE {self._name} WITH (FORCE)",
            f"ALTER DATABASE {self._copy} RENAME TO {self._name}",
        )

    def forget(self) -> None:
        self._execute(f"DROP DATABASE IF EXISTS {self._copy}")

    def _execute(self, *statements: str) -> None:
        connection.close()
        with connection._nodb_cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


def page_opened(name: str) -> Order:
    order = an_order(name)
    assert pay(order).status_code == 201
    return work(order)


def tell(calls: list[Any]) -> None:
    """The gateways call; from their dashboards, the same call once more."""
    for call in calls:
        answer = Client().post(
            f"/v1/webhooks/{call.gateway}",
            data=call.document,
            content_type="application/json",
            headers=dict(call.headers),
        )
        assert answer.status_code == 200, answer.content


def paid_and_told(gateways: Simulator, order: Order) -> None:
    known = len(gateways.webhooks.all)
    buyer_pays(gateways, order)
    tell(gateways.webhooks.all[known:])


def all_sent_and_done() -> None:
    OutboxEvent.objects.filter(sent_at=None).update(sent_at=timezone.now())


def workers_do_all(letters: Letters) -> None:
    """A worker takes what the outbox and the queue have, until both are empty."""
    while relay.run_once().sent or _workers_do_a_batch(letters):
        pass


def _workers_do_a_batch(letters: Letters) -> int:
    answer = letters.client.receive_message(
        QueueUrl=letters.pair.url, MaxNumberOfMessages=10, WaitTimeSeconds=0
    )
    messages = answer.get("Messages", [])
    for message in messages:
        [document] = decode(message["Body"], adapt).args
        try:
            process(document, receive_count=1, worker="worker-2")
        except Terminal:
            letters.client.send_message(QueueUrl=letters.pair.dlq_url, MessageBody=message["Body"])
        letters.client.delete_message(
            QueueUrl=letters.pair.url, ReceiptHandle=message["ReceiptHandle"]
        )
    return len(messages)


def status_of(order: Order) -> str:
    return Order.objects.get(pk=order.pk).status


def a_worker(host: str, *, seen_ago: timedelta = timedelta()) -> None:
    at = timezone.now() - seen_ago
    WorkerReport.objects.create(host=host, pid=7, started_at=at, seen_at=at, processes=5)


def waiting_for_an_answer() -> Any:
    return PaymentNotification.objects.filter(outcome="waiting")


def give_back(gateways: Simulator, order: Order) -> None:
    """A person refunds the order in Midtrans's dashboard, which notifies the shop."""
    known = len(gateways.webhooks.all)
    [one] = [t for t in gateways.midtrans.transactions if t.order_id.startswith(str(order.pk))]
    gateways.midtrans._add_refund(one, one.amount, key="by-hand", reason="lost order")
    gateways.midtrans.become(one, "refund")
    tell(gateways.webhooks.all[known:])
    assert PaymentNotification.objects.filter(outcome="unmatched").count() == 3


def message_ids() -> list[str]:
    return [str(email.extra_headers["Message-ID"]) for email in mail.outbox]


def test_a_restored_database_is_brought_up_to_date(
    gateways: Simulator, letters: Letters, restore_point: RestorePoint, settings: Any
) -> None:
    settings.GATEWAY_ASKS_PER_MINUTE = 300  # the most that preflight takes
    ayu, budi = (get_user_model().objects.create_user(name) for name in ("ayu", "budi"))
    refunded_later = refunding.paid(gateways, "midtrans")
    paid_later, told_later = page_opened("xendit"), page_opened("midtrans")
    opened_later = work(an_order("midtrans"))
    all_sent_and_done()
    confirmed_later = an_order("sandbox")  # which pays at once
    a_worker("worker-1", seen_ago=timedelta(minutes=5))
    restore_point.keep()
    known = len(gateways.webhooks.all)

    # What came to its end,
    work(confirmed_later)
    paid_and_told(gateways, paid_later)
    work(paid_later)
    assert pay(opened_later).status_code == 201
    paid_and_told(gateways, opened_later)
    assert work(opened_later).status == "paid"
    all_sent_and_done()
    # and that whose messages are still on the queues, or come again.
    refunding.decide(refunded_later, PART, ayu, budi)
    refunding.send(gateways)
    letters.put([as_celery(parse_event(one.payload)) for one in published(refunded_later)[-1:]])
    paid_and_told(gateways, told_later)
    lost = page_opened("midtrans")
    paid_and_told(gateways, lost)
    assert work(lost).status == "paid"
    relay.run_once()
    told = gateways.webhooks.all[known:]
    emails_before = message_ids()

    restore_point.put_back()

    assert not Order.objects.filter(pk=lost.pk).exists()
    found, asked, started, told_again, discarded, skipped, mended = steps(HEADING)
    run(found)

    run(asked)
    a_worker("worker-2")
    workers_do_all(letters)
    after_the_workers = [status_of(one) for one in (paid_later, told_later, confirmed_later)]
    assert after_the_workers == ["paid", "paid", "paid"]
    assert status_of(refunded_later) == "partly_refunded"
    assert status_of(opened_later) == "pending"
    run(started)

    tell(told)
    workers_do_all(letters)
    assert status_of(opened_later) == "paid"
    assert waiting_for_an_answer().exists()
    run(told_again)
    assert not waiting_for_an_answer().exists()

    give_back(gateways, lost)
    for one in PaymentNotification.objects.filter(outcome="unmatched"):
        unmatched.dismiss(notification_id=one.pk, reason="given back", actor=ayu.username)
    run(discarded)
    run(skipped)
    assert not ProcessedEvent.objects.filter(status="failed").exists()
    run(mended)

    for order in (refunded_later, paid_later, told_later, opened_later):
        assert kept_by_the_shop(order) == kept_at_the_gateway(gateways, order)
    emails_after = message_ids()[len(emails_before) :]
    assert len(emails_after) == len(set(emails_after))
    # Confirmations and receipts of this shop's orders come a second time, as the same email.
    assert set(emails_before) & set(emails_after)


def test_workers_that_start_before_the_gateways_were_asked(
    gateways: Simulator, letters: Letters, restore_point: RestorePoint
) -> None:
    ayu, budi = (get_user_model().objects.create_user(name) for name in ("ayu", "budi"))
    order = refunding.paid(gateways, "midtrans")
    all_sent_and_done()
    restore_point.keep()
    refunding.decide(order, PART, ayu, budi)
    refunding.send(gateways)
    relay.run_once()

    restore_point.put_back()
    workers_do_all(letters)

    assert (letters.visible(), status_of(order)) == (1, "paid")
    assert "WrongAmount" in ProcessedEvent.objects.get(status="failed").last_error
    # It is late, not lost: what the gateway says then is the same event.
    reconcile(since(timezone.now() - timedelta(days=1)), per_minute=300)
    workers_do_all(letters)
    assert status_of(order) == "partly_refunded"
    assert not ProcessedEvent.objects.filter(status="failed").exists()
