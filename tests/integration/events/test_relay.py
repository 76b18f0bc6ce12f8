"""The relay between real PostgreSQL and a real SQS server, which a proxy breaks on demand."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from celery import Celery
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.db.models.functions import Now
from django.utils import timezone

from skincare.events import outbox, relay
from skincare.events.models import OutboxEvent
from skincare.events.outbox import publish
from skincare.events.relay import Relay, Relayed, run_once
from skincare.events.routing import adapt
from skincare.events.schema import Event
from skincare.local.deadline import busyness, wait_until
from skincare.sqs import configure
from skincare.telemetry.identity import IDENTITY
from tests.conftest import QueuePair
from tests.faults.faults import FailedEntries, Hang, LostAnswer, Reset, Status
from tests.faults.proxy import FaultProxy
from tests.integration.events.event_documents import new_event

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

pytestmark = pytest.mark.django_db(transaction=True)

#: The application that settings.CELERY_APP names in these tests; a new one for each.
app: Celery


@pytest.fixture
def proxy(sqs_server: str) -> Iterator[FaultProxy]:
    with FaultProxy(sqs_server) as running:
        yield running


@pytest.fixture(autouse=True)
def wait_for_sqs(
    queue_pair: QueuePair, proxy: FaultProxy, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Send with the times that production waits for SQS, or with others."""

    def waiting(**seconds: float) -> None:
        made = Celery("relay-test", set_as_current=False)
        configure(
            made,
            policy=replace(settings.SQS_POLICY, **seconds),
            queues={"orders": queue_pair.url},
            region=settings.AWS_REGION,
            endpoint_url=proxy.url,
            adapter=adapt,
        )
        monkeypatch.setattr(sys.modules[__name__], "app", made, raising=False)

    waiting()
    settings.CELERY_APP = f"{__name__}.app"
    settings.RELAY_BACKOFF_SECONDS = (0.05, 0.2)
    settings.RELAY_SWEEP_SECONDS = 0.2
    return waiting


def published(count: int, **changes: Any) -> list[Event]:
    events = [new_event(**changes) for _ in range(count)]
    with transaction.atomic():
        for event in events:
            publish(event)
    return events


def received(client: "SQSClient", url: str) -> list[dict[str, Any]]:
    """Take all messages off the queue; return their Celery envelopes."""
    envelopes = []
    while True:
        answer = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0)
        if not answer.get("Messages"):
            return envelopes
        for message in answer["Messages"]:
            envelopes.append(json.loads(message["Body"]))
            client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def task_ids(client: "SQSClient", url: str) -> Counter[str]:
    return Counter(envelope["headers"]["id"] for envelope in received(client, url))


def unsent() -> int:
    return OutboxEvent.objects.filter(sent_at__isnull=True).count()


def test_rows_go_out_in_batches_as_messages_of_their_tasks(
    queue_pair: QueuePair, sqs_client: "SQSClient", proxy: FaultProxy
) -> None:
    payment = published(20)
    order = published(5, event_type="order.confirmed", payment_id="")

    assert run_once() == Relayed(sent=25)
    assert run_once() == Relayed()

    assert [call.entries for call in proxy.calls("SendMessageBatch")] == [10, 10, 5]
    messages = {m["headers"]["id"]: m for m in received(sqs_client, queue_pair.url)}
    assert set(messages) == {event.event_id for event in payment + order}
    assert {messages[e.event_id]["headers"]["task"] for e in payment} == {
        "payments.payment_processed"
    }
    assert {messages[e.event_id]["headers"]["task"] for e in order} == {"orders.order_confirmed"}
    assert json.loads(messages[order[0].event_id]["body"])[0] == [order[0].document()]
    assert OutboxEvent.objects.filter(sent_at__isnull=False, send_attempts=1).count() == 25


def test_two_relays_never_send_the_same_row(
    queue_pair: QueuePair, sqs_client: "SQSClient", proxy: FaultProxy, settings: Any
) -> None:
    settings.RELAY_ROWS = 20
    proxy.latency = 0.02
    events = published(200)

    def relay_all(_: int) -> int:
        try:
            sent = 0
            while (relayed := run_once()).sent:
                sent += relayed.sent
            return sent
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as relays:
        assert sum(relays.map(relay_all, range(4))) == 200

    assert task_ids(sqs_client, queue_pair.url) == {event.event_id: 1 for event in events}


def test_an_entry_that_sqs_refuses_fails_alone_and_is_put_off(
    queue_pair: QueuePair, sqs_client: "SQSClient", proxy: FaultProxy
) -> None:
    events = published(3)
    refused = events[1].event_id
    fault = FailedEntries(
        code="InvalidMessageContents",
        sender_fault=True,
        which=lambda _, entry: refused in entry["MessageBody"],
    )

    with proxy.inject(fault, action="SendMessageBatch"):
        before = timezone.now()
        assert run_once() == Relayed(sent=2, failed=1)

    row = OutboxEvent.objects.get(sent_at__isnull=True)
    assert (row.event_id, row.send_attempts) == (refused, 1)
    assert row.last_error.startswith("InvalidMessageContents")
    assert row.next_attempt_at > before
    wait_until(lambda: run_once().sent == 1, seconds=5, what="the row to be due again")
    assert task_ids(sqs_client, queue_pair.url) == {event.event_id: 1 for event in events}


@pytest.mark.parametrize("fault", [Status(503), Status(403), Reset(), Hang()], ids=repr)
def test_while_sqs_fails_every_row_stays_due(
    fault: Any,
    queue_pair: QueuePair,
    sqs_client: "SQSClient",
    proxy: FaultProxy,
    wait_for_sqs: Callable[..., None],
) -> None:
    events = published(30)

    wait_for_sqs(read_timeout=0.3)
    with proxy.inject(fault):
        assert run_once() == Relayed(failed=30, sqs_failed=True)

    assert unsent() == 30
    wait_for_sqs()
    assert run_once().sent == 30
    assert task_ids(sqs_client, queue_pair.url) == {event.event_id: 1 for event in events}


def test_a_lost_answer_may_send_twice_but_never_not_at_all(
    queue_pair: QueuePair, sqs_client: "SQSClient", proxy: FaultProxy
) -> None:
    events = published(10)

    with proxy.inject(LostAnswer(), action="SendMessageBatch", times=2):  # both tries of one call
        assert run_once().sqs_failed
    assert run_once().sent == 10

    assert task_ids(sqs_client, queue_pair.url) == {event.event_id: 3 for event in events}


def test_the_thread_sends_what_is_committed_and_sweeps_what_was_left(
    queue_pair: QueuePair, sqs_client: "SQSClient", proxy: FaultProxy, settings: Any
) -> None:
    left = published(3)  # its process died before it could send
    settings.RELAY_IN_PROCESS = True
    try:
        relay.start()
        wait_until(lambda: unsent() == 0, seconds=10, what="the sweep")
        committed, in_time = threading.Event(), []

        def answers_after_the_commit(*_: object) -> bool:
            in_time.append(committed.wait(timeout=settings.SQS_POLICY.read_timeout - 1))
            return True

        fault = FailedEntries(which=answers_after_the_commit)
        with proxy.inject(fault, action="SendMessageBatch"):
            fresh = published(3)
            committed.set()
            wait_until(
                lambda: len(proxy.calls("SendMessageBatch")) >= 4,
                seconds=10,
                what="the relay to try and fail",
            )
            assert unsent() == 3
            assert all(in_time), "the request does not wait for SQS"
        wait_until(lambda: unsent() == 0, seconds=10, what="the relay to recover")
    finally:
        stop_thread()

    sent = task_ids(sqs_client, queue_pair.url)
    assert sent == {event.event_id: 1 for event in left + fresh}


def test_in_a_rush_one_call_takes_what_several_commits_left(
    queue_pair: QueuePair, sqs_client: "SQSClient", proxy: FaultProxy, settings: Any
) -> None:
    settings.RELAY_IN_PROCESS = True
    settings.RELAY_PAUSE_SECONDS = 5.0  # far longer than ten commits take
    try:
        first = published(1)
        wait_until(lambda: unsent() == 0, seconds=10, what="a lone event, which is sent at once")
        rush = [event for _ in range(10) for event in published(1)]
        settings.RELAY_PAUSE_SECONDS = 0.1
        wait_until(lambda: unsent() == 0, seconds=20, what="the rush")
    finally:
        stop_thread()

    assert [call.entries for call in proxy.calls("SendMessageBatch")] == [1, 10]
    sent = task_ids(sqs_client, queue_pair.url)
    assert sent == {event.event_id: 1 for event in first + rush}


def test_a_relay_that_pauses_in_a_rush_ends_at_once(settings: Any) -> None:
    settings.RELAY_PAUSE_SECONDS = 60.0
    published(1)
    passing = Relay()
    passing.wake()
    thread = threading.Thread(target=passing.run)
    thread.start()
    wait_until(lambda: unsent() == 0, seconds=10, what="the event")

    passing.stop()
    thread.join(timeout=10)

    assert not thread.is_alive()


def stop_thread() -> None:
    running, thread = relay._relay, relay._thread
    assert running is not None
    assert thread is not None
    running.stop()
    thread.join(timeout=10)
    assert not thread.is_alive()
    relay._forget_after_fork()
    connections.close_all()


def test_there_is_one_thread_however_often_it_is_woken(settings: Any) -> None:
    settings.RELAY_IN_PROCESS = True
    try:
        with ThreadPoolExecutor(8) as requests:
            list(requests.map(lambda _: relay.wake(), range(50)))
        assert [t.name for t in threading.enumerate()].count("outbox-relay") == 1
    finally:
        stop_thread()


def test_a_failing_job_stops_neither_the_relay_nor_the_other_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[str] = []

    def fails() -> None:
        ran.append("fails")
        raise ValueError("job")

    monkeypatch.setattr(relay, "_jobs", [])
    relay.every(3600, "fails", fails)
    relay.every(0, "works", lambda: ran.append("works"))

    passing = Relay()
    assert passing.run_pass()
    assert passing.run_pass()

    assert ran == ["fails", "works", "works"]


def test_the_jobs_are_run_in_a_rush_that_does_not_end(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.RELAY_PAUSE_SECONDS = 0.0
    ran: list[int] = []
    monkeypatch.setattr(relay, "_jobs", [])
    passing = Relay()

    def goes_on() -> None:
        ran.append(unsent())
        if len(ran) == 5:
            passing.stop()
        published(1)  # the next look finds something again

    relay.every(0, "goes on", goes_on)
    published(1)
    assert passing.run_pass()

    assert ran == [0] * 5


def test_the_jobs_are_run_where_sending_fails_for_another_reason_than_an_outage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(relay, "_jobs", [])
    relay.every(3600, "job", lambda: ran.append("job"))
    published(1)
    passing = Relay()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE events_outboxevent RENAME COLUMN leased_until TO renamed")
        try:
            assert not passing.run_pass()
        finally:
            cursor.execute("ALTER TABLE events_outboxevent RENAME COLUMN renamed TO leased_until")

    assert ran == ["job"]
    assert passing.run_pass()
    assert unsent() == 0


def test_a_relay_that_is_to_end_begins_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(relay, "_jobs", [])
    passing = Relay()
    relay.every(0, "stops", passing.stop)
    relay.every(0, "late", lambda: ran.append("late"))

    assert passing.run_pass()

    assert ran == []


def test_a_row_of_which_no_message_can_be_made_fails_alone_and_is_put_off(
    queue_pair: QueuePair, sqs_client: "SQSClient"
) -> None:
    events = published(25)
    unreadable = events[12].event_id
    with connection.cursor() as cursor:  # more digits than Python reads
        cursor.execute(
            """UPDATE events_outboxevent SET payload = '{"amount": 1e5000}' WHERE event_id = %s""",
            [unreadable],
        )

    before = timezone.now()
    assert run_once() == Relayed(sent=24, failed=1)

    row = OutboxEvent.objects.defer("payload").get(event_id=unreadable)
    assert row.sent_at is None
    assert row.last_error.startswith("ValueError")
    assert row.next_attempt_at > before
    assert row.leased_until is None
    assert set(task_ids(sqs_client, queue_pair.url)) == {e.event_id for e in events} - {unreadable}


def relay_outbox(
    *arguments: str, url: str, endpoint: str, database: str
) -> "subprocess.Popen[str]":
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DATABASE_URL": database,
        "ORDER_EVENTS_QUEUE_URL": url,
        "SQS_ENDPOINT_URL": endpoint,
    }
    return subprocess.Popen(
        [sys.executable, "manage.py", "relay_outbox", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_command_sends_what_is_due_and_exits(
    queue_pair: QueuePair,
    sqs_client: "SQSClient",
    sqs_server: str,
    proxy: FaultProxy,
    test_database_url: str,
) -> None:
    events = published(12)

    with proxy.inject(Status(503)):
        failing = relay_outbox(
            "--once", url=queue_pair.url, endpoint=proxy.url, database=test_database_url
        )
        output, _ = failing.communicate(timeout=120)
    assert failing.returncode == 1, output
    assert "Not everything could be sent" in output

    working = relay_outbox(
        "--once", url=queue_pair.url, endpoint=sqs_server, database=test_database_url
    )
    output, _ = working.communicate(timeout=120)
    assert working.returncode == 0, output
    assert task_ids(sqs_client, queue_pair.url) == {event.event_id: 1 for event in events}


def test_the_command_relays_until_sigterm(
    queue_pair: QueuePair, sqs_client: "SQSClient", sqs_server: str, test_database_url: str
) -> None:
    command = relay_outbox(url=queue_pair.url, endpoint=sqs_server, database=test_database_url)
    try:
        events = published(3)
        wait_until(lambda: unsent() == 0, seconds=30, what="the command to send")
        command.send_signal(signal.SIGTERM)
        output, _ = command.communicate(timeout=120)
    finally:
        command.kill()
    assert command.returncode == 0, output
    assert task_ids(sqs_client, queue_pair.url) == {event.event_id: 1 for event in events}


@pytest.mark.timeout(60)
def test_a_signal_ends_the_command_at_whatever_moment_it_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[bool] = []

    def run(self: Relay) -> None:
        with self._woken._cond:  # held for a moment whenever it begins or ends to wait
            signal.raise_signal(signal.SIGTERM)
        ended.append(self._stopped.wait(10 * busyness()))

    monkeypatch.setattr(Relay, "run", run)
    monkeypatch.setattr(IDENTITY, "service", IDENTITY.service)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        call_command("relay_outbox")
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    assert ended == [True]


def test_no_transaction_is_open_and_no_row_locked_while_sqs_is_slow(
    queue_pair: QueuePair, proxy: FaultProxy
) -> None:
    [event] = published(1)
    answers: list[object] = []

    def ask_the_database() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"  # PostgreSQL cleans up in the background
            )
            answers.append(cursor.fetchone())
            cursor.execute("SELECT event_id FROM events_outboxevent FOR UPDATE NOWAIT")
            answers.append(cursor.fetchone())
        connection.close()

    def ask_during_the_call(*_: object) -> bool:
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(ask_the_database).result()
        return False

    during_the_call = FailedEntries(code="none", sender_fault=False, which=ask_during_the_call)
    with proxy.inject(during_the_call, action="SendMessageBatch"):
        run_once()

    assert answers[:2] == [(0,), (event.event_id,)]


def test_a_relay_that_died_leaves_its_rows_to_another_when_the_lease_is_over(
    queue_pair: QueuePair, sqs_client: "SQSClient", settings: Any
) -> None:
    events = published(3)
    relay._lease()  # and died

    assert run_once() == Relayed()
    OutboxEvent.objects.update(leased_until=Now())

    assert run_once() == Relayed(sent=3)
    assert task_ids(sqs_client, queue_pair.url) == {event.event_id: 1 for event in events}


def test_a_row_that_is_resent_while_it_is_sent_goes_out_once_more(
    queue_pair: QueuePair, sqs_client: "SQSClient"
) -> None:
    [event] = published(1)
    rows, leased_until = relay._lease()
    outbox.resend(event.event_id)

    relay._mark_sent([row.id for row in rows], leased_until)

    assert run_once() == Relayed(sent=1)


def test_no_call_is_begun_that_the_lease_could_not_outlast(
    queue_pair: QueuePair, sqs_client: "SQSClient", proxy: FaultProxy, settings: Any
) -> None:
    settings.RELAY_LEASE_SECONDS = 0.3
    proxy.latency = 0.2
    events = published(30)

    first = run_once()

    assert 0 < first.sent < 30
    assert (first.failed, first.sqs_failed) == (0, False)
    assert OutboxEvent.objects.filter(send_attempts=0, leased_until=None).count() == unsent()
    proxy.latency = 0.0
    assert run_once().sent == 30 - first.sent
    assert task_ids(sqs_client, queue_pair.url) == {event.event_id: 1 for event in events}


def test_a_backlog_goes_out_in_several_batches_at_a_time(
    queue_pair: QueuePair, sqs_client: "SQSClient", proxy: FaultProxy
) -> None:
    events = published(230)

    assert Relay().run_pass()

    # A slow machine's answers may come late, and their batches go out twice.
    assert set(task_ids(sqs_client, queue_pair.url)) == {event.event_id for event in events}
    assert unsent() == 0


@pytest.mark.parametrize("in_flight", [1, 4])
def test_of_many_batches_only_a_few_are_tried_while_sqs_is_away(
    in_flight: int, queue_pair: QueuePair, proxy: FaultProxy
) -> None:
    published(100)

    with proxy.inject(Status(503)):
        assert run_once(in_flight=in_flight) == Relayed(failed=100, sqs_failed=True)

    # Each call is tried twice.
    assert len(proxy.calls("SendMessageBatch")) <= 2 * in_flight


def test_the_waits_of_a_failing_row_go_by_the_databases_clock(
    queue_pair: QueuePair, proxy: FaultProxy, settings: Any
) -> None:
    settings.RELAY_BACKOFF_SECONDS = (100, 100)
    events = published(2)
    refused = events[0].event_id
    fault = FailedEntries(
        code="InvalidMessageContents",
        sender_fault=True,
        which=lambda _, entry: refused in entry["MessageBody"],
    )
    far_away = timezone.now() + timedelta(days=365)

    with proxy.inject(fault, action="SendMessageBatch"), moved_clock(far_away):
        assert run_once() == Relayed(sent=1, failed=1)

    waiting = OutboxEvent.objects.annotate(now=Now()).get(event_id=refused)
    assert timedelta(seconds=45) < waiting.next_attempt_at - waiting.now < timedelta(seconds=101)


@contextmanager
def moved_clock(now: datetime) -> Iterator[None]:
    """Let the process believe that it is another time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timezone, "now", lambda: now)
        yield


def test_the_poll_reads_only_unsent_rows() -> None:
    published(5)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE events_outboxevent")
        cursor.execute("SET enable_seqscan = off")
        try:
            cursor.execute("EXPLAIN " + relay._LEASE, {"seconds": 60, "rows": 100})
            plan = "\n".join(line for (line,) in cursor.fetchall())
        finally:
            cursor.execute("RESET enable_seqscan")

    assert "outbox_unsent" in plan
    assert "Sort" not in plan
