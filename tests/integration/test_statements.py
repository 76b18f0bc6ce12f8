"""How many statements each path sends to PostgreSQL, its BEGIN and COMMIT included.

Each is a round trip, and most of them are a while that a lock is held. A number here may go down;
where it has to go up, something else should become one statement.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orders import catalogue
from orders.models import Order
from payments.models import Payment
from skincare.events.consumer import EventOutcome, process
from skincare.events.database_sessions import PREPARE_AFTER
from skincare.events.models import OutboxEvent
from skincare.local.outsiders import Midtrans
from skincare.sqs.outcome import Unavailable

pytestmark = pytest.mark.django_db(transaction=True)

CHECKOUT = 9
WEBHOOK = 9
PAID_EVENT = 10  # with its claim and its email


def statements(action: Callable[[], object]) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        action()
    return [query["sql"] for query in captured]


def check_out(client: Client, *, method: str = "midtrans") -> dict[str, Any]:
    answer = client.post(
        "/v1/checkout",
        json.dumps(
            {
                "items": [
                    {"sku": "CLN-GEL-100", "quantity": 1},
                    {"sku": "CLN-OIL-150", "quantity": 2},
                ],
                "email": "buyer@mail.example",
                "payment_method": method,
            }
        ),
        content_type="application/json",
        headers={"Idempotency-Key": uuid4().hex},
    )
    assert answer.status_code == 201, answer.content
    placed: dict[str, Any] = answer.json()
    return placed


def test_a_checkout_takes_nine_statements(client: Client, settings: Any) -> None:
    settings.LIMIT_BUYERS = True
    catalogue.seed()
    check_out(client)

    sent = statements(lambda: check_out(client))

    assert len(sent) <= CHECKOUT, "\n".join(sent)


def test_a_paid_event_takes_ten_statements(client: Client) -> None:
    catalogue.seed()
    first, second = (check_out(client, method="sandbox")["order_id"] for _ in range(2))

    def consume(order_id: str) -> None:
        event = OutboxEvent.objects.get(order_id=order_id, event_type="payment.processed")
        process(event.payload, receive_count=1, worker="worker-1")

    consume(first)
    sent = statements(lambda: consume(second))[1:]  # without the look into the outbox

    assert Order.objects.get(pk=second).status == "paid"
    assert len(sent) <= PAID_EVENT, "\n".join(sent)


@pytest.mark.parametrize("asked", [[], ["midtrans"]], ids=["applied", "to be asked for"])
def test_a_webhook_takes_nine_statements(client: Client, settings: Any, asked: list[str]) -> None:
    settings.PROVIDERS_ASKED = asked
    catalogue.seed()
    gateway = Midtrans("", server_key=settings.MIDTRANS_SERVER_KEY)

    def notify(placed: dict[str, Any]) -> None:
        reference = Payment.objects.get(order_id=placed["order_id"]).reference
        document = gateway.notification({**placed, "order_id": reference}, "settlement", "200")
        answer = client.post(
            "/v1/webhooks/midtrans", json.dumps(document), content_type="application/json"
        )
        assert answer.status_code == 200, answer.content

    first, second = check_out(client), check_out(client)
    notify(first)
    sent = statements(lambda: notify(second))[1:]  # without the look at the reference

    assert OutboxEvent.objects.filter(event_type__startswith="payment.").count() == 2
    assert len(sent) <= WEBHOOK, "\n".join(sent)


@contextmanager
def migrated(change: str, *, back: str) -> Iterator[None]:
    """Another session changes the table of the orders meanwhile."""
    with closing(connection.copy()) as other, other.cursor() as cursor:
        cursor.execute(f"ALTER TABLE orders_order {change}")
        try:
            yield
        finally:
            connection.close()
            cursor.execute(f"ALTER TABLE orders_order {back}")


WIDENED = {
    "change": "ALTER COLUMN number TYPE varchar(40)",
    "back": "ALTER COLUMN number TYPE varchar(32)",
}
ADDED = {"change": "ADD COLUMN of_a_later_release int", "back": "DROP COLUMN of_a_later_release"}


def paid_events(client: Client, count: int) -> list[dict[str, Any]]:
    orders = [check_out(client, method="sandbox")["order_id"] for _ in range(count)]
    events = OutboxEvent.objects.filter(order_id__in=orders, event_type="payment.processed")
    return list(events.values_list("payload", flat=True))


def test_a_column_that_a_migration_widens_costs_an_event_no_receive(client: Client) -> None:
    catalogue.seed()
    *before, event = paid_events(client, PREPARE_AFTER + 3)
    for one in before:  # the session prepares what comes with each
        process(one, receive_count=1, worker="worker-1")

    with migrated(**WIDENED):
        with pytest.raises(Unavailable) as away:
            process(event, receive_count=1, worker="worker-1")
        again = process(event, receive_count=1, worker="worker-1", resumes=away.value.resumes)

    assert again is EventOutcome.DONE
    assert Order.objects.get(pk=event["order_id"]).status == "paid"


def test_a_column_that_a_migration_adds_is_not_noticed(client: Client) -> None:
    catalogue.seed()
    *before, event = paid_events(client, PREPARE_AFTER + 3)
    for one in before:
        process(one, receive_count=1, worker="worker-1")

    with migrated(**ADDED):
        assert process(event, receive_count=1, worker="worker-1") is EventOutcome.DONE


def test_a_webhook_after_a_migration_is_taken_at_the_second_call(
    client: Client, settings: Any
) -> None:
    catalogue.seed()
    gateway = Midtrans("", server_key=settings.MIDTRANS_SERVER_KEY)

    def notify(placed: dict[str, Any]) -> int:
        document = gateway.notification(
            {**placed, "order_id": f"{placed['order_id']}-1"}, "settlement", "200"
        )
        answer = client.post(
            "/v1/webhooks/midtrans", json.dumps(document), content_type="application/json"
        )
        return answer.status_code

    *before, last = [check_out(client) for _ in range(PREPARE_AFTER + 3)]
    assert {notify(placed) for placed in before} == {200}

    with migrated(**WIDENED):
        assert [notify(last), notify(last)] == [503, 200]
