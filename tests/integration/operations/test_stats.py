"""How things stand, counted from the rows and the queues as they are."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction
from django.utils import timezone

from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.outbox import publish
from skincare.events.schema import Event
from skincare.operations import stats
from tests.integration.events.event_documents import new_event
from tests.integration.operations.conftest import Letters, as_bare, claimed, done, failed

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def published(event: Event) -> Event:
    with transaction.atomic():
        publish(event)
    return event


def changed(event: Event, **values: Any) -> None:
    ProcessedEvent.objects.filter(event_id=event.event_id).update(**values)


def test_empty_queues(letters: Letters) -> None:
    queue, dlq = stats.queue_stats()

    assert (queue.is_dlq, dlq.is_dlq) == (False, True)
    assert (queue.name, dlq.name) == tuple(url.rsplit("/", 1)[1] for url in letters.pair)
    for one in (queue, dlq):
        assert one.depth == (0, 0, 0)
        assert (one.oldest_age_seconds, one.oldest_age_note) == (None, "nothing waits")
        assert one.error is None


def test_the_queues_age_is_that_of_our_oldest_unclaimed_event(letters: Letters) -> None:
    letters.client.send_message(QueueUrl=letters.pair.url, MessageBody="waits")
    for seconds, event in ((50, new_event()), (100, done(new_event()))):
        published(event)
        OutboxEvent.objects.filter(event_id=event.event_id).update(
            sent_at=timezone.now() - timedelta(seconds=seconds)
        )

    queue, _ = stats.queue_stats()

    assert queue.depth is not None
    assert queue.depth.visible == 1
    assert queue.oldest_age_seconds is not None
    assert 50 <= queue.oldest_age_seconds < 60


def test_the_queues_age_is_not_made_up(letters: Letters) -> None:
    letters.client.send_message(QueueUrl=letters.pair.url, MessageBody="another producer's")

    queue, _ = stats.queue_stats()

    assert queue.oldest_age_seconds is None
    assert queue.oldest_age_note.startswith("not available: ")


@pytest.mark.django_db(transaction=True)
def test_the_queues_depth_is_there_where_the_database_gives_no_age(
    letters: Letters, monkeypatch: pytest.MonkeyPatch, test_database_url: str
) -> None:
    monkeypatch.setattr(stats, "_STATEMENT_TIMEOUT_MS", 50)
    letters.client.send_message(QueueUrl=letters.pair.url, MessageBody="waits")

    with psycopg.connect(test_database_url) as other:
        other.execute("LOCK TABLE events_outboxevent")
        queue, _ = stats.queue_stats()

    assert queue.depth == (1, 0, 0)
    assert queue.oldest_age_seconds is None
    assert queue.oldest_age_note == "not available: OperationalError"


def test_the_dlqs_age_is_its_messages_own_and_nothing_is_hidden(letters: Letters) -> None:
    letters.put(["poison"] * 3)

    _, dlq = stats.queue_stats()

    assert dlq.depth is not None
    assert dlq.depth.visible == 3
    assert dlq.oldest_age_seconds is not None
    assert 0 <= dlq.oldest_age_seconds < 60
    assert dlq.oldest_age_note == "since it was first sent"
    assert (letters.visible(), letters.hidden()) == (3, 0)


def test_a_sample_is_called_one(letters: Letters) -> None:
    letters.put(["poison"] * 12)
    assert stats.queue_stats()[1].oldest_age_note.endswith(" looked at: at least")


def test_queues_that_cannot_be_reached_say_so(settings: Any) -> None:
    settings.SQS_ENDPOINT_URL = "http://127.0.0.1:9"
    for one in stats.queue_stats():
        assert one.depth is None
        assert one.error == "SQS does not answer: EndpointConnectionError"


def test_the_outbox() -> None:
    assert stats.outbox_stats() == stats.OutboxStats(0, 0, None, "")
    published(new_event())
    failing = published(new_event())
    OutboxEvent.objects.filter(event_id=failing.event_id).update(
        send_attempts=3,
        last_error="ServiceUnavailable",
        created_at=timezone.now() - timedelta(seconds=70),
    )

    outbox = stats.outbox_stats()

    assert (outbox.unsent, outbox.failing, outbox.last_error) == (2, 1, "ServiceUnavailable")
    assert outbox.oldest_age_seconds is not None
    assert 70 <= outbox.oldest_age_seconds < 80


def test_events_that_are_not_finished() -> None:
    done(new_event())
    failed(new_event())
    claimed(new_event())
    dead = new_event()
    claimed(dead)
    changed(dead, lease_expires_at=timezone.now())

    assert stats.event_stats() == stats.EventStats(in_progress=1, interrupted=1, failed=1)


def test_rates() -> None:
    for minutes in (1, 1, 31, 61):
        changed(done(new_event()), finished_at=timezone.now() - timedelta(minutes=minutes))
    changed(failed(new_event()), claimed_at=timezone.now() - timedelta(minutes=31))

    buckets = stats.rates(HOUR, buckets=6)

    assert [(one.done, one.failed) for one in buckets] == [
        (0, 0),
        (0, 0),
        (1, 1),
        (0, 0),
        (0, 0),
        (2, 0),
    ]
    assert {one.seconds for one in buckets} == {600.0}


def test_latency() -> None:
    assert stats.latency(HOUR) == stats.Latency(0, None, None, None)
    now = timezone.now()
    for seconds in range(1, 101):
        changed(done(new_event()), created_at=now - timedelta(seconds=seconds), finished_at=now)

    latency = stats.latency(HOUR)

    assert latency.events == 100
    assert latency.p50 == pytest.approx(50.5)
    assert latency.p95 == pytest.approx(95.05)
    assert latency.p99 == pytest.approx(99.01)


def test_top_errors_count_equal_faults_together() -> None:
    newest = None
    for number in range(3):
        event = new_event()
        newest = failed(event, f"UnknownPayment: {event.payment_id}, try {number}\nsecond line")
    failed(new_event(), "TimeoutError: mail")
    changed(failed(new_event(), "OldError: x"), claimed_at=timezone.now() - timedelta(hours=2))

    first, second = stats.top_errors(HOUR)

    assert (first.error, first.events) == ("UnknownPayment: …, try #", 3)
    assert newest is not None
    assert first.example_event_id == newest.event_id
    assert (second.error, second.events) == ("TimeoutError: mail", 1)


def test_the_status_command_tells_them(letters: Letters) -> None:
    done(new_event())
    failed(new_event(), "TimeoutError: mail")
    letters.put([as_bare(new_event())])
    text, document = StringIO(), StringIO()

    for arguments, out in (([], text), (["--json"], document)):
        with pytest.raises(CommandError) as failure:
            call_command("status", *arguments, stdout=out)
        assert failure.value.returncode == 1, "something is to be looked at"

    assert "1 waiting, 0 in flight" in text.getvalue()
    assert "1 failed, last " in text.getvalue()
    told = json.loads(document.getvalue())
    assert [one["depth"]["visible"] for one in told["queues"]] == [0, 1]
    assert told["events"] == {"in_progress": 0, "interrupted": 0, "failed": 1}
    assert told["last_hour"]["errors"][0]["error"] == "TimeoutError: mail"


def test_the_status_command_fails_where_sqs_does(settings: Any) -> None:
    settings.SQS_ENDPOINT_URL = "http://127.0.0.1:9"
    out = StringIO()
    with pytest.raises(CommandError) as failure:
        call_command("status", stdout=out)
    assert failure.value.returncode == 3
    assert "not available: SQS does not answer" in out.getvalue()
    assert "outbox: 0 unsent" in out.getvalue()
