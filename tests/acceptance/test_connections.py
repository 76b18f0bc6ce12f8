"""A worker keeps its database connections, and a connection that is cut off costs nothing."""

from uuid import uuid4

import pytest
from django.db import connection
from pytest_celery import CeleryTestSetup

from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.local.deadline import busyness, wait_until
from tests.acceptance.conftest import Shop
from tests.acceptance.settings import SQS_POLICY

pytestmark = [pytest.mark.django_db(transaction=True)]

WAVES = 4
EVENTS_OF_A_WAVE = 50


def sessions() -> int:
    """How many sessions of PostgreSQL the database has had."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT sessions FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def cut_all_others() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_two_hundred_events_take_one_session_a_process_and_a_cut_costs_no_receive(
    celery_setup: CeleryTestSetup, shop: Shop
) -> None:
    paid = shop.paid_order()
    confirmed = OutboxEvent.objects.get(
        order_id=paid.placed.order_id, event_type="order.confirmed"
    ).payload
    cut_all_others()
    before = sessions()

    for wave in range(1, WAVES + 1):
        for _ in range(EVENTS_OF_A_WAVE):
            shop.deliver({**confirmed, "event_id": str(uuid4())})
        done = ProcessedEvent.objects.filter(status="done")
        wait_until(
            lambda: done.count() == wave * EVENTS_OF_A_WAVE,  # noqa: B023 called in its turn
            seconds=60,
            what="a wave to be done",
            every=0.1,
        )
        cut_all_others()

    assert set(done.values_list("receive_count", "attempts")) == {(1, 1)}
    assert shop.in_dlq() == []
    # A process that is replaced, as one that a busy machine starves is, needs a session too.
    assert sessions() - before <= WAVES * SQS_POLICY.concurrency * busyness()
