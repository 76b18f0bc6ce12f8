"""Events whose messages are gone: found, and sent again; those that only wait are left alone."""

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models.functions import Now
from structlog.testing import capture_logs

from skincare.events import audit, unclaimed
from skincare.events.claim import Claim, claim
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.moments import EARLIEST
from skincare.events.outbox import publish
from skincare.events.routing import PAYMENT_TASK
from skincare.events.schema import Event
from skincare.events.unclaimed import Sweep, explained_seconds
from skincare.sqs.dead_letters import Unreachable
from skincare.sqs.policy import SQSPolicy
from skincare.telemetry.identity import IDENTITY
from tests.conftest import QueuePair
from tests.faults.messages import celery_message
from tests.integration.events.event_documents import new_event

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def queue(queue_pair: QueuePair, sqs_server: str, settings: Any) -> QueuePair:
    """The queue of the settings."""
    settings.ORDER_EVENTS_QUEUE_URL = queue_pair.url
    settings.SQS_ENDPOINT_URL = sqs_server
    return queue_pair


def sent(*, ago: timedelta, claimed: bool = False) -> Event:
    """An event that the outbox sent some time ago; it was claimed a second later, or never."""
    event = new_event()
    publish(event)
    OutboxEvent.objects.filter(event_id=event.event_id).update(sent_at=Now() - ago, send_attempts=1)
    if claimed:
        held = claim(event, worker="w1")
        assert isinstance(held, Claim)
        ProcessedEvent.objects.filter(event_id=event.event_id).update(
            first_claimed_at=Now() - ago + timedelta(seconds=1)
        )
    return event


def unsent() -> set[str]:
    return set(OutboxEvent.objects.filter(sent_at=None).values_list("event_id", flat=True))


def ids(events: Iterable[Event]) -> set[str]:
    return {event.event_id for event in events}


HOUR = timedelta(hours=1)


def test_what_a_purge_took_is_sent_again_once() -> None:
    lost = [sent(ago=HOUR), sent(ago=3 * HOUR), sent(ago=timedelta(days=5))]
    sent(ago=2 * HOUR, claimed=True)
    sweep = Sweep()

    assert set(sweep.run()) == ids(lost)
    assert unsent() == ids(lost)
    assert sweep.run() == []


def test_what_a_receive_can_still_explain_is_left_alone(settings: Any) -> None:
    explained = timedelta(seconds=explained_seconds(settings.SQS_POLICY))
    sent(ago=explained - timedelta(seconds=30))
    late = sent(ago=explained + timedelta(seconds=30))

    assert Sweep().run() == [late.event_id]


def test_five_receives_of_a_message_are_explained() -> None:
    policy = SQSPolicy(
        visibility_timeout=120, max_receive_count=5, backoff=(10, 30, 60, 120), backoff_jitter=0.2
    )

    assert explained_seconds(policy) == 5 * 120 + 1.2 * 220


def test_while_messages_wait_nothing_that_was_sent_later_than_they_is_lost(
    queue: QueuePair, sqs_client: "SQSClient"
) -> None:
    sqs_client.send_message(QueueUrl=queue.url, MessageBody="of a backlog")
    lost = sent(ago=5 * HOUR)
    sent(ago=4 * HOUR, claimed=True)
    sent(ago=3 * HOUR)  # in the backlog, as far as anybody can tell

    assert Sweep().run() == [lost.event_id]


def test_an_event_that_was_sent_again_after_its_claim_proves_nothing(
    queue: QueuePair, sqs_client: "SQSClient"
) -> None:
    sqs_client.send_message(QueueUrl=queue.url, MessageBody="of a backlog")
    sent(ago=3 * HOUR)
    again = sent(ago=4 * HOUR, claimed=True)
    OutboxEvent.objects.filter(event_id=again.event_id).update(sent_at=Now() - HOUR)

    assert Sweep().run() == []


@pytest.mark.parametrize("form", ["celery", "bare"])
def test_what_is_in_the_dead_letter_queue_is_a_persons_matter(
    form: str, queue: QueuePair, sqs_client: "SQSClient"
) -> None:
    dead, lost = sent(ago=HOUR), sent(ago=HOUR)
    bodies = {
        "celery": celery_message(PAYMENT_TASK, [dead.document()]),
        "bare": json.dumps(dead.document()),
    }
    for body in ("not a message", bodies[form]):
        sqs_client.send_message(QueueUrl=queue.dlq_url, MessageBody=body)

    assert Sweep().run() == [lost.event_id]


def test_what_a_person_discarded_stays_away() -> None:
    event = sent(ago=HOUR)
    row = OutboxEvent.objects.get(event_id=event.event_id)
    audit.record(actor="sari", action=audit.DISCARDED, subject=row, reason="a test")

    assert Sweep().run() == []


def test_where_sqs_cannot_be_asked_nothing_is_sent_again(settings: Any) -> None:
    sent(ago=HOUR)
    settings.ORDER_EVENTS_QUEUE_URL += "-of-nobody"

    with pytest.raises(Unreachable):
        Sweep().run()

    assert unsent() == set()


def abandoned(*, ago: timedelta, status: str = "failed", published: bool = True) -> Event:
    """An event that was claimed some time ago and has not ended."""
    event = new_event()
    if published:
        publish(event)
    OutboxEvent.objects.filter(event_id=event.event_id).update(sent_at=Now() - ago, send_attempts=1)
    held = claim(event, worker="w1")
    assert isinstance(held, Claim)
    if status == "effects_done":
        held.commit_effects()
    if status == "failed":
        held.fail("KeyError")
    ProcessedEvent.objects.filter(event_id=event.event_id).update(claimed_at=Now() - ago)
    return event


@pytest.mark.parametrize("status", ["failed", "processing", "effects_done"])
@pytest.mark.parametrize("published", [True, False], ids=["ours", "of another producer"])
def test_what_was_claimed_has_not_ended_and_is_in_no_queue_is_sent_again_once(
    status: str, published: bool
) -> None:
    lost = abandoned(ago=HOUR, status=status, published=published)
    sent(ago=2 * HOUR, claimed=True)
    claimed = ProcessedEvent.objects.exclude(event_id=lost.event_id)
    claimed.update(status="done", finished_at=Now())
    sweep = Sweep()

    assert sweep.run() == [lost.event_id]
    assert unsent() == {lost.event_id}
    assert sweep.run() == []
    OutboxEvent.objects.update(sent_at=Now())
    assert sweep.run() == []


def test_a_claim_that_a_receive_can_still_explain_is_left_alone(settings: Any) -> None:
    explained = timedelta(seconds=explained_seconds(settings.SQS_POLICY))
    abandoned(ago=explained - timedelta(seconds=30))
    late = abandoned(ago=explained + timedelta(seconds=30))

    assert Sweep().run() == [late.event_id]


def test_an_email_that_waits_for_its_time_is_not_lost() -> None:
    event = sent(ago=HOUR)
    held = claim(event, worker="w1")
    assert isinstance(held, Claim)
    held.put_off("SMTP 454", at_least=HOUR.total_seconds())
    ProcessedEvent.objects.update(claimed_at=Now() - HOUR)

    assert Sweep().run() == []


def test_a_failed_event_whose_letter_a_person_can_see_or_has_discarded_stays_where_it_is(
    queue: QueuePair, sqs_client: "SQSClient"
) -> None:
    dead, discarded, lost = (abandoned(ago=HOUR) for _ in range(3))
    sqs_client.send_message(QueueUrl=queue.dlq_url, MessageBody=json.dumps(dead.document()))
    row = ProcessedEvent.objects.get(event_id=discarded.event_id)
    audit.record(actor="sari", action=audit.DISCARDED, subject=row, name=str(row), reason="a test")
    sweep = Sweep()

    assert sweep.run() == [lost.event_id]
    # It is not walked for again in the same hour: that hides all letters.
    sqs_client.purge_queue(QueueUrl=queue.dlq_url)
    assert sweep.run() == []
    assert Sweep().run() == [dead.event_id]


def test_while_somebody_looks_at_the_dead_letters_nothing_is_taken_for_lost(
    queue: QueuePair, sqs_client: "SQSClient"
) -> None:
    dead = abandoned(ago=HOUR)
    sqs_client.send_message(QueueUrl=queue.dlq_url, MessageBody=json.dumps(dead.document()))
    sqs_client.receive_message(QueueUrl=queue.dlq_url, VisibilityTimeout=60)

    with pytest.raises(Unreachable, match="hidden"):
        Sweep().run()

    assert unsent() == set()


@pytest.mark.parametrize(("service", "reported"), [("api", [1, 0]), ("worker", [])])
def test_only_the_api_sweeps_and_says_whether_it_could(
    service: str,
    reported: list[int],
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    lost = sent(ago=HOUR)
    monkeypatch.setattr(IDENTITY, "service", service)
    monkeypatch.setattr(unclaimed, "_sweep", Sweep())
    url = settings.ORDER_EVENTS_QUEUE_URL
    with capture_logs() as lines, django_capture_on_commit_callbacks(execute=True):
        for settings.ORDER_EVENTS_QUEUE_URL in (f"{url}-of-nobody", url):
            unclaimed.resend_unclaimed()

    found = [line["SweepsFailed"] for line in lines if "SweepsFailed" in line]
    assert found == [[float(one)] for one in reported]
    assert unsent() == ({lost.event_id} if service == "api" else set())


def test_more_than_a_sweep_sends_is_sent_by_the_next_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unclaimed, "_LIMIT", 2)
    monkeypatch.setattr(unclaimed, "_SLICE", 2)
    lost = [sent(ago=HOUR * age) for age in range(7, 2, -1)]
    sweep = Sweep()

    swept = [set(sweep.run()) for _ in range(4)]

    assert swept == [ids(lost[:2]), ids(lost[2:4]), ids(lost[4:]), set()]
    assert not sweep.is_behind


def test_dead_letters_do_not_keep_a_sweep_from_what_was_sent_later(
    queue: QueuePair, sqs_client: "SQSClient", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unclaimed, "_LIMIT", 2)
    monkeypatch.setattr(unclaimed, "_SLICE", 2)
    dead = [sent(ago=5 * HOUR) for _ in range(4)]
    for event in dead:
        sqs_client.send_message(QueueUrl=queue.dlq_url, MessageBody=json.dumps(event.document()))
    lost = sent(ago=HOUR)
    sweep = Sweep()

    assert [sweep.run() for _ in range(3)] == [[], [lost.event_id], []]


def test_between_two_sweeps_the_apis_relays_search_until_they_came_to_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unclaimed, "_SLICE", 1)
    monkeypatch.setattr(unclaimed, "_SLICES", 2)
    monkeypatch.setattr(unclaimed, "_sweep", Sweep())
    for age in (5, 4, 3):
        sent(ago=HOUR * age, claimed=True)
    positions = []
    for service in ("worker", "api", "api", "api"):
        monkeypatch.setattr(IDENTITY, "service", service)
        unclaimed.search_on()
        positions.append(unclaimed._sweep.since)

    moments = OutboxEvent.objects.order_by("sent_at").values_list("sent_at", flat=True)
    assert positions == [EARLIEST, moments[1], moments[2], moments[2]]


def test_the_next_sweep_looks_only_at_what_was_sent_since() -> None:
    sent(ago=2 * HOUR, claimed=True)
    sweep = Sweep()
    sweep.run()

    first = sweep.since
    assert first > EARLIEST
    sweep.run()
    assert sweep.since >= first
