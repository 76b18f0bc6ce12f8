"""A worker keeps its database connections, and a connection that is cut off costs nothing."""

from collections.abc import Callable, Iterator
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


#: Who claims an event leaves its session's identity. All sessions of the database would be counted
#: with those of the worker's reports, one every ten seconds.
_NOTE_SESSIONS = """
CREATE TABLE claiming_session (pid int, started timestamptz, PRIMARY KEY (pid, started));
CREATE FUNCTION note_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO claiming_session
    SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note_session AFTER INSERT OR UPDATE ON events_processedevent
    FOR EACH ROW EXECUTE FUNCTION note_session();
"""
_FORGET_SESSIONS = """
DROP TRIGGER note_session ON events_processedevent;
DROP FUNCTION note_session;
DROP TABLE claiming_session;
"""


@pytest.fixture
def sessions(transactional_db: None) -> Iterator[Callable[[], int]]:
    """Returns how many sessions have claimed or finished an event."""
    with connection.cursor() as cursor:
        cursor.execute(_NOTE_SESSIONS)

    def noted() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM claiming_session")
            return int(cursor.fetchone()[0])

    yield noted
    with connection.cursor() as cursor:
        cursor.execute(_FORGET_SESSIONS)


def cut_all_others() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_two_hundred_events_take_one_session_a_process_and_a_cut_costs_no_receive(
    celery_setup: CeleryTestSetup, shop: Shop, sessions: Callable[[], int]
) -> None:
    paid = shop.paid_order()
    confirmed = OutboxEvent.objects.get(
        order_id=paid.placed.order_id, event_type="order.confirmed"
    ).payload
    cut_all_others()

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
    assert 0 < sessions() <= WAVES * SQS_POLICY.concurrency * busyness()
