"""An email that the provider delays: recorded on the claim, and sent again by the outbox."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from structlog.testing import capture_logs

from skincare.events import handlers
from skincare.events.claim import Claim, claim
from skincare.events.consumer import EventOutcome, process
from skincare.events.exceptions import LostClaim, NotificationDelayed
from skincare.events.handlers import Handler
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.outbox import publish
from skincare.events.schema import Event
from tests.integration.events.event_documents import event_document, new_event

pytestmark = pytest.mark.django_db

TYPE = "test.happened"


class Mailing:
    """A handler whose email is delayed as often as it is told."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.delays: list[NotificationDelayed] = []

    def effects(self, event: Event) -> None:
        self.calls.append("effects")

    def notify(self, event: Event) -> None:
        self.calls.append("email")
        if self.delays:
            raise self.delays.pop(0)


@pytest.fixture
def mailing(monkeypatch: pytest.MonkeyPatch) -> Mailing:
    handler = Mailing()
    monkeypatch.setattr(handlers, "_handlers", {})
    handlers.register(TYPE, Handler(effects=handler.effects, notify=handler.notify))
    return handler


def run(document: dict[str, Any]) -> EventOutcome:
    return process(document, receive_count=1, worker="w1")


def processed(document: dict[str, Any]) -> ProcessedEvent:
    return ProcessedEvent.objects.get(event_id=document["event_id"])


def now_of_the_database() -> datetime:
    return ProcessedEvent.objects.annotate(now=Now()).values_list("now", flat=True)[0]


def claimed(event: Event) -> Claim:
    held = claim(event, worker="w1")
    assert isinstance(held, Claim)
    return held


def wait_of(until: datetime | None) -> float:
    assert until is not None
    return (until - now_of_the_database()).total_seconds()


def test_a_delayed_email_is_sent_again_by_the_outbox_and_the_effects_stay_done_once(
    mailing: Mailing,
) -> None:
    document = event_document(event_type=TYPE)
    mailing.delays = [NotificationDelayed("SMTP 454")]

    assert run(document) is EventOutcome.PUT_OFF

    row, waiting = processed(document), OutboxEvent.objects.get()
    assert (row.status, row.put_offs, row.last_error) == (
        "failed",
        1,
        "NotificationDelayed: SMTP 454",
    )
    assert row.state_display == "effects done, email put off"
    assert (waiting.event_id, waiting.sent_at) == (row.event_id, None)
    assert waiting.next_attempt_at == row.put_off_until
    assert row.put_off_until > now_of_the_database()

    assert run(document) is EventOutcome.DONE
    assert mailing.calls == ["effects", "email", "email"]
    assert processed(document).put_off_until is None


def test_an_event_that_was_sent_before_is_due_again_at_that_time() -> None:
    event = new_event()
    publish(event)
    OutboxEvent.objects.update(sent_at=Now(), send_attempts=1)

    until = claimed(event).put_off("SMTP 454")

    waiting = OutboxEvent.objects.get()
    assert (waiting.sent_at, waiting.next_attempt_at) == (None, until)


def test_the_wait_doubles_up_to_the_longest(settings: Any) -> None:
    settings.PUT_OFF_SECONDS = (100, 1000)
    event = new_event()

    waits = [wait_of(claimed(event).put_off("SMTP 454")) for _ in range(6)]

    for wait, whole in zip(waits, (100, 200, 400, 800, 1000, 1000), strict=True):
        assert whole / 2 - 5 < wait <= whole


def test_the_wait_is_no_shorter_than_the_provider_needs(settings: Any) -> None:
    settings.PUT_OFF_SECONDS = (1, 1)

    assert 295 < wait_of(claimed(new_event()).put_off("SMTP 454", at_least=300)) <= 300


def test_who_waits_for_a_turn_was_not_refused_and_waits_no_longer_each_time(settings: Any) -> None:
    settings.PUT_OFF_SECONDS = (100, 1000)
    event = new_event()

    waits = [wait_of(claimed(event).put_off("busy", at_least=3, spacing=2)) for _ in range(12)]

    assert all(2 < wait <= 3 + 2 for wait in waits)
    assert ProcessedEvent.objects.get().put_offs == 0
    assert ProcessedEvent.objects.get().put_off_since is not None


def test_only_what_the_provider_delayed_is_counted_as_put_off(
    mailing: Mailing, django_capture_on_commit_callbacks: Any
) -> None:
    document = event_document(event_type=TYPE)
    mailing.delays = [NotificationDelayed("SMTP 454"), NotificationDelayed("busy", spacing=0.1)]

    with capture_logs() as lines, django_capture_on_commit_callbacks(execute=True):
        assert [run(document), run(document)] == [EventOutcome.PUT_OFF] * 2

    assert [line["EmailsPutOff"] for line in lines if "EmailsPutOff" in line] == [[1.0]]
    assert processed(document).put_offs == 1


def test_turns_are_as_far_apart_as_the_pace_says_and_never_far() -> None:
    for _ in range(200):
        claimed(new_event()).put_off("SMTP 454")

    waits = [wait_of(claimed(new_event()).put_off("busy", spacing=0.1)) for _ in range(20)]
    far = [wait_of(claimed(new_event()).put_off("busy", spacing=10_000)) for _ in range(20)]

    assert 10 < max(waits) <= 220 * 0.1
    assert 20 < max(far) <= 240 * 0.2


def test_after_a_day_it_fails_as_anything_else_and_is_shown(
    mailing: Mailing, settings: Any
) -> None:
    document = event_document(event_type=TYPE)
    mailing.delays = [NotificationDelayed("SMTP 454")] * 3
    run(document)
    day = timedelta(seconds=settings.PUT_OFF_ENDS_AFTER_SECONDS)
    ProcessedEvent.objects.update(put_off_since=Now() - day + timedelta(seconds=60))
    assert run(document) is EventOutcome.PUT_OFF
    ProcessedEvent.objects.update(put_off_since=Now() - day)
    OutboxEvent.objects.update(sent_at=Now())

    with pytest.raises(NotificationDelayed):
        run(document)

    row = processed(document)
    assert (row.status, row.put_off_until, row.state_display) == ("failed", None, "failed")
    assert not OutboxEvent.objects.filter(sent_at=None).exists()


def test_who_lost_the_claim_puts_nothing_off() -> None:
    event = new_event()
    lost = claimed(event)
    ProcessedEvent.objects.update(lease_expires_at=Now())
    claimed(event).finish()

    with pytest.raises(LostClaim):
        lost.put_off("SMTP 454")

    assert not OutboxEvent.objects.exists()
