"""Looking through the dead-letter queue, putting back, discarding."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.db import IntegrityError, connection
from django.utils import timezone

from skincare.events.exceptions import ReasonMissing
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.schema import Event
from skincare.operations import dead_letter_actions
from skincare.operations.dead_letter_actions import DeadLetterOutcome
from skincare.operations.dead_letter_messages import DeadLetterFilter, DeadLetterState
from skincare.sqs.dead_letters import NoDeadLetterQueue, Unreachable
from tests.faults.faults import FailedEntries, Status
from tests.faults.messages import celery_message
from tests.faults.proxy import FaultProxy
from tests.integration.events.event_documents import event_document, new_event
from tests.integration.operations.conftest import (
    Letters,
    another,
    as_bare,
    as_celery,
    as_sns,
    claimed,
    done,
    failed,
)

pytestmark = pytest.mark.django_db

EVERYTHING = DeadLetterFilter()


@pytest.mark.parametrize(
    ("form", "kind"), [(as_celery, "celery"), (as_bare, "event"), (as_sns, "sns")]
)
def test_each_form_is_read(letters: Letters, form: Callable[[Event], str], kind: str) -> None:
    event = new_event()
    letters.put([form(event)])

    [letter] = dead_letter_actions.peek()

    assert (letter.kind, letter.reason, letter.event) == (kind, None, event)
    assert (letter.state, letter.summary) == (DeadLetterState.NEVER_SEEN, "never seen")
    assert letter.body == form(event) or kind == "celery"


@pytest.mark.parametrize(
    ("body", "kind", "summary"),
    [
        ("hello", "raw", "not an event: the message is neither JSON nor base64 of UTF-8"),
        (
            json.dumps(event_document(amount_rupiah=1.5)),
            "raw",
            "not an event: not adopted: amount_rupiah: must be a JSON integer, not text, "
            "a decimal, an exponent or a boolean",
        ),
        (
            celery_message("payments.payment_processed", ["x"]),
            "celery",
            "not an event: arguments: must be one event document",
        ),
        (
            celery_message("nobody.knows_me", ["x"]),
            "celery",
            "not an event: the task is unknown",
        ),
    ],
)
def test_poison_says_why(letters: Letters, body: str, kind: str, summary: str) -> None:
    letters.put([body])

    [letter] = dead_letter_actions.peek()

    assert (letter.kind, letter.state, letter.summary) == (
        kind,
        DeadLetterState.NOT_AN_EVENT,
        summary,
    )
    assert letter.event is None


def test_an_event_in_an_envelope_that_is_refused_can_be_put_back(letters: Letters) -> None:
    event = new_event()
    letters.put([celery_message("nobody.knows_me", [event.document()])])

    report = dead_letter_actions.redrive(matching=EVERYTHING, actor="root@web")

    [(letter, outcome)] = report.results
    assert (letter.kind, letter.reason) == ("celery", "the task is unknown")
    assert outcome is DeadLetterOutcome.REDRIVEN
    assert OutboxEvent.objects.get(event_id=event.event_id).payload == event.document()


def test_looking_hides_messages_only_as_long_as_it_lasts(letters: Letters) -> None:
    letters.put(as_bare(new_event()) for _ in range(12))

    looking = dead_letter_actions.peek()
    next(looking)
    assert letters.hidden() == 10
    looking.close()

    assert (letters.visible(), letters.hidden()) == (12, 0)


def test_no_more_is_received_than_asked_for(letters: Letters) -> None:
    letters.put(as_bare(new_event()) for _ in range(25))

    assert len(list(dead_letter_actions.peek(limit=10))) == 10
    assert len(list(dead_letter_actions.peek(limit=0))) == 0
    # Not looked at: what a look at ten did not need.
    counts = sorted(letter.receive_count for letter in dead_letter_actions.peek())
    assert counts.count(1) == 15


def test_states_are_told_with_the_error(letters: Letters) -> None:
    held = new_event()
    claimed(held)
    dead = new_event()
    claimed(dead)
    ProcessedEvent.objects.filter(event_id=dead.event_id).update(lease_expires_at=timezone.now())
    events = [failed(new_event()), done(new_event()), held, dead, another(done(new_event()))]
    letters.put(as_bare(event) for event in events)

    told = {letter.event: letter.summary for letter in dead_letter_actions.peek()}

    assert [told[event] for event in events] == [
        "failed once: ValueError: no such payment",
        "already processed: done",
        "in progress: worker-1 holds it",
        "tried once: worker-1 died while it worked on it",
        "another event, with another payload, has its id",
    ]


def test_a_finished_event_is_left_alone_unless_forced(letters: Letters) -> None:
    event = done(new_event())
    letters.put([as_bare(event)])

    left = dead_letter_actions.redrive(matching=EVERYTHING, actor="root@web")
    assert left.counts == {DeadLetterOutcome.ALREADY_PROCESSED: 1}
    assert letters.visible() == 1
    assert not OutboxEvent.objects.exists()

    forced = dead_letter_actions.redrive(matching=EVERYTHING, actor="root@web", force=True)
    assert forced.counts == {DeadLetterOutcome.REDRIVEN: 1}
    assert letters.visible() == 0
    assert OutboxEvent.objects.get().event_id == event.event_id
    assert ProcessedEvent.objects.get().status == "failed"  # so that a worker claims it again


def test_two_letters_of_one_event_make_one_outbox_row(letters: Letters) -> None:
    event = new_event()
    letters.put([as_bare(event), as_celery(event)])

    report = dead_letter_actions.redrive(matching=EVERYTHING, actor="root@web")

    assert report.counts == {DeadLetterOutcome.REDRIVEN: 2}
    assert OutboxEvent.objects.count() == 1
    assert letters.visible() == 0


def test_a_letter_that_contradicts_the_outbox_is_left_alone(letters: Letters) -> None:
    event = new_event()
    letters.put([as_bare(event), as_bare(another(event))])

    report = dead_letter_actions.redrive(matching=EVERYTHING, actor="root@web")

    assert report.counts == {DeadLetterOutcome.REDRIVEN: 1, DeadLetterOutcome.CONFLICT: 1}
    assert letters.visible() == 1


def test_what_the_outbox_does_not_take_stays(letters: Letters, settings: Any) -> None:
    settings.EVENT_MAX_BYTES = 1000
    letters.put([as_bare(new_event(note="x" * 1000))])

    report = dead_letter_actions.redrive(matching=EVERYTHING, actor="root@web")

    assert report.counts == {DeadLetterOutcome.TOO_LARGE: 1}
    assert letters.visible() == 1
    assert not OutboxEvent.objects.exists()


def test_what_fails_again_meanwhile_is_not_put_back_for_ever(letters: Letters) -> None:
    event = new_event()
    letters.put([as_bare(event)])

    report = dead_letter_actions.redrive(
        matching=EVERYTHING,
        actor="root@web",
        progress=lambda *_: letters.put([as_bare(event)] * 3),  # as workers do that fail at once
    )

    assert report.counts == {DeadLetterOutcome.REDRIVEN: 1}
    assert (letters.visible(), letters.hidden()) == (3, 0)


def test_a_letter_that_sqs_does_not_delete_is_told(
    letters: Letters, sqs_server: str, settings: Any
) -> None:
    letters.put([as_bare(new_event())])

    with FaultProxy(sqs_server) as proxy:
        settings.SQS_ENDPOINT_URL = proxy.url
        proxy.inject(FailedEntries("InternalError"), action="DeleteMessageBatch")
        report = dead_letter_actions.redrive(matching=EVERYTHING, actor="root@web")

    assert report.counts == {DeadLetterOutcome.NOT_DELETED: 1}
    assert letters.visible() == 1
    assert OutboxEvent.objects.count() == 1


def test_sqs_that_fails_after_the_commit_loses_nothing(
    letters: Letters, sqs_server: str, settings: Any
) -> None:
    letters.put([as_bare(new_event())])

    with FaultProxy(sqs_server) as proxy:
        settings.SQS_ENDPOINT_URL = proxy.url
        proxy.inject(Status(503), action="DeleteMessageBatch")
        with pytest.raises(Unreachable, match="SQS refused DeleteMessageBatch"):
            dead_letter_actions.redrive(matching=EVERYTHING, actor="root@web")

    assert (letters.visible(), letters.hidden()) == (1, 0)
    assert OutboxEvent.objects.count() == 1


def test_a_database_that_fails_loses_no_letter(letters: Letters) -> None:
    letters.put([as_bare(new_event())])

    with connection.cursor() as cursor:  # whatever it is that the database refuses
        cursor.execute("ALTER TABLE django_admin_log ADD CONSTRAINT full_up CHECK (false)")
    with pytest.raises(IntegrityError):
        dead_letter_actions.redrive(matching=EVERYTHING, actor="root@web")

    assert (letters.visible(), letters.hidden()) == (1, 0)
    assert not OutboxEvent.objects.exists()


def test_only_what_matches_is_touched(letters: Letters) -> None:
    wanted = failed(new_event(event_type="payment.failed"), "TimeoutError: mail")
    letters.put(map(as_bare, [wanted, failed(new_event()), new_event()]))

    report = dead_letter_actions.redrive(
        matching=DeadLetterFilter(
            event_type="payment.failed", error="timeouterror", state="failed"
        ),
        actor="root@web",
    )

    assert [letter.event for letter, _ in report.results] == [wanted]
    assert report.looked_at == 3
    assert (letters.visible(), letters.hidden()) == (2, 0)


def test_a_person_with_an_account_is_named_in_the_audit_entry(letters: Letters) -> None:
    user = get_user_model().objects.create_user("ayu")
    event = new_event()
    letters.put([as_bare(event)])

    dead_letter_actions.redrive(matching=EVERYTHING, actor="ayu")

    entry = LogEntry.objects.get()
    assert entry.user == user
    assert entry.object_repr == f"payment.processed {event.event_id}"
    assert entry.get_edited_object() == OutboxEvent.objects.get()


def test_discarding_keeps_the_event_and_the_reason(letters: Letters) -> None:
    event = new_event()
    letters.put([as_bare(event), "poison"])

    report = dead_letter_actions.discard(
        matching=EVERYTHING, reason="a test of ours", actor="root@web"
    )

    assert report.counts == {DeadLetterOutcome.DISCARDED: 2}
    assert letters.visible() == 0
    kept = [
        json.loads(entry.change_message.split(": ", 1)[1])
        for entry in LogEntry.objects.order_by("id")
    ]
    assert {entry["reason"] for entry in kept} == {"a test of ours"}
    assert {entry["by"] for entry in kept} == {"root@web"}
    assert event.document() in [entry["event"] for entry in kept]
    assert {user.username: user.is_active for user in get_user_model().objects.all()} == {
        "manage.py": False
    }


def test_nothing_is_discarded_without_a_reason(letters: Letters) -> None:
    letters.put(["poison"])

    with pytest.raises(ReasonMissing):
        dead_letter_actions.discard(matching=EVERYTHING, reason=" ", actor="root@web")

    assert letters.visible() == 1
    assert not LogEntry.objects.exists()


def test_sqs_that_does_not_answer_is_said(settings: Any) -> None:
    settings.SQS_ENDPOINT_URL = "http://127.0.0.1:9"

    with pytest.raises(Unreachable, match="SQS does not answer: EndpointConnectionError"):
        list(dead_letter_actions.peek())


def test_a_queue_without_dead_letter_queue_is_said(letters: Letters) -> None:
    letters.client.set_queue_attributes(QueueUrl=letters.pair.url, Attributes={"RedrivePolicy": ""})

    with pytest.raises(NoDeadLetterQueue):
        list(dead_letter_actions.peek())
