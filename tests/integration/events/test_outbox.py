"""Publishing: the event is written with its change or not at all."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from skincare.events import relay
from skincare.events.claim import Claim, claim
from skincare.events.exceptions import EventTooLarge, OutsideTransaction, UnknownEvent
from skincare.events.models import OutboxEvent
from skincare.events.outbox import publish, resend
from tests.integration.events.event_documents import new_event

CaptureOnCommit = Callable[..., Any]


@pytest.mark.django_db(transaction=True)
def test_publishing_outside_a_transaction_is_refused() -> None:
    with pytest.raises(OutsideTransaction):
        publish(new_event())

    assert not OutboxEvent.objects.exists()


@pytest.mark.django_db
def test_an_event_is_written_once_and_wakes_the_relay_after_the_commit(
    django_capture_on_commit_callbacks: CaptureOnCommit,
) -> None:
    event = new_event(extra=[1])

    with django_capture_on_commit_callbacks() as callbacks:
        assert publish(event) is True
        assert publish(event) is False

    assert callbacks == [relay.wake]
    row = OutboxEvent.objects.get()
    assert (row.event_id, row.payload, row.sent_at) == (event.event_id, event.document(), None)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("savepoint", [False, True], ids=["transaction", "savepoint"])
def test_what_is_rolled_back_sends_nothing(
    savepoint: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[str] = []
    monkeypatch.setattr(relay, "wake", lambda: woken.append("woken"))

    class Rollback(Exception):
        pass

    if savepoint:
        with transaction.atomic(), pytest.raises(Rollback), transaction.atomic():
            publish(new_event())
            raise Rollback
    else:
        with pytest.raises(Rollback), transaction.atomic():
            publish(new_event())
            raise Rollback

    assert woken == []
    assert not OutboxEvent.objects.exists()


@pytest.mark.django_db
def test_an_event_must_be_small() -> None:
    with pytest.raises(EventTooLarge):
        publish(new_event(snapshot="x" * 64 * 1024))


@pytest.mark.django_db
def test_a_sent_event_is_sent_again_under_the_same_id() -> None:
    event = new_event()
    publish(event)
    OutboxEvent.objects.update(sent_at="2026-11-11T00:00:00Z")

    resend(event.event_id)

    assert OutboxEvent.objects.get().sent_at is None


@pytest.mark.django_db
def test_an_event_of_another_producer_can_be_resent_too() -> None:
    event = new_event()
    assert isinstance(claim(event, worker="w1"), Claim)

    resend(event.event_id)

    assert OutboxEvent.objects.get().payload == event.document()
    with pytest.raises(UnknownEvent):
        resend("unknown")
