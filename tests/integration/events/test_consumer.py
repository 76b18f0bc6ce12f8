"""What the consumer does with a message, on real PostgreSQL."""

from typing import Any

import pytest
from django.db import DataError, OperationalError, connection

from skincare.events import handlers
from skincare.events.claim import Claim, claim
from skincare.events.consumer import EventOutcome, process
from skincare.events.exceptions import DuplicateHandler, NotPrepared, TerminalError
from skincare.events.handlers import Handler
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.outbox import publish
from skincare.events.schema import Event, parse_event
from skincare.sqs.outcome import RetryLater, Terminal, Unavailable
from tests.integration.events.event_documents import event_document

pytestmark = pytest.mark.django_db

TYPE = "test.happened"


class Recorded:
    """A handler that records its calls and fails as it is told."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.effects_errors: list[Exception] = []
        self.notify_errors: list[Exception] = []

    def effects(self, event: Event) -> None:
        self.calls.append("effects")
        publish(parse_event(event_document(order_id=event.order_id)))  # an effect to look for
        if self.effects_errors:
            raise self.effects_errors.pop(0)

    def notify(self, event: Event) -> None:
        assert not connection.needs_rollback
        self.calls.append("email")
        if self.notify_errors:
            raise self.notify_errors.pop(0)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    handler = Recorded()
    monkeypatch.setattr(handlers, "_handlers", {})
    handlers.register(TYPE, Handler(effects=handler.effects, notify=handler.notify))
    return handler


def processed(document: dict[str, Any]) -> ProcessedEvent:
    return ProcessedEvent.objects.get(event_id=document["event_id"])


def effects_of(document: dict[str, Any]) -> int:
    return OutboxEvent.objects.filter(order_id=document["order_id"]).count()


def run(
    document: dict[str, Any], receive_count: int = 1, resumes: int | None = None
) -> EventOutcome:
    return process(document, receive_count=receive_count, worker="w1", resumes=resumes)


def test_an_event_is_done_once_and_its_repeats_are_duplicates(recorded: Recorded) -> None:
    document = event_document(event_type=TYPE)

    outcomes = [run(document) for _ in range(3)]

    assert outcomes == [EventOutcome.DONE, EventOutcome.DUPLICATE, EventOutcome.DUPLICATE]
    assert recorded.calls == ["effects", "email"]
    assert effects_of(document) == 1
    row = processed(document)
    assert (row.status, row.attempts) == ("done", 1)
    assert row.effects_at is not None
    assert row.finished_at is not None
    assert row.lease_expires_at is None


def test_failed_effects_leave_nothing_and_are_tried_again(recorded: Recorded) -> None:
    document = event_document(event_type=TYPE)
    recorded.effects_errors = [KeyError("first"), KeyError("second")]

    for receive_count in (1, 2):
        with pytest.raises(KeyError):
            run(document, receive_count)
        assert effects_of(document) == 0
        assert (processed(document).status, processed(document).receive_count) == (
            "failed",
            receive_count,
        )
    assert processed(document).last_error == "KeyError: 'second'"

    assert run(document, 3) is EventOutcome.DONE
    assert effects_of(document) == 1
    assert (processed(document).attempts, processed(document).last_error) == (3, "")


def test_a_failed_email_repeats_only_the_email(recorded: Recorded) -> None:
    document = event_document(event_type=TYPE)
    recorded.notify_errors = [TimeoutError("smtp")]

    with pytest.raises(TimeoutError):
        run(document)
    assert processed(document).status == "failed"
    assert run(document) is EventOutcome.DONE

    assert recorded.calls == ["effects", "email", "email"]
    assert effects_of(document) == 1


def test_a_terminal_error_sends_the_message_to_the_dlq_and_is_recorded(recorded: Recorded) -> None:
    class OrderGone(TerminalError):
        pass

    document = event_document(event_type=TYPE)
    recorded.effects_errors = [OrderGone("no such order")]

    with pytest.raises(Terminal, match="OrderGone: no such order"):
        run(document)

    assert processed(document).status == "failed"
    assert processed(document).last_error == "OrderGone: no such order"


def test_a_type_that_nobody_handles_is_skipped_and_done(recorded: Recorded) -> None:
    document = event_document(event_type="stock.counted", payment_id="")

    assert run(document) is EventOutcome.SKIPPED
    assert run(document) is EventOutcome.DUPLICATE

    assert recorded.calls == []
    assert processed(document).status == "skipped"


def test_what_is_not_an_event_is_terminal_and_leaves_no_row(recorded: Recorded) -> None:
    document = event_document(amount_rupiah="150000")

    with pytest.raises(Terminal, match="not an event: amount_rupiah: must be a JSON integer"):
        run(document)

    assert not ProcessedEvent.objects.exists()
    assert recorded.calls == []


def test_an_event_held_by_another_worker_waits_for_its_lease(recorded: Recorded) -> None:
    document = event_document(event_type=TYPE)
    assert isinstance(claim(parse_event(document), worker="other"), Claim)

    with pytest.raises(RetryLater) as kept:
        run(document)

    assert kept.value.after is not None
    assert 96 < kept.value.after <= 101
    assert recorded.calls == []
    assert processed(document).worker == "other"


def test_another_payload_under_the_same_id_is_terminal(recorded: Recorded) -> None:
    document = event_document(event_type=TYPE)
    run(document)

    with pytest.raises(Terminal, match="another event"):
        run({**document, "amount_rupiah": 1})

    assert recorded.calls == ["effects", "email"]


def test_a_lost_claim_commits_no_effects_and_keeps_the_message(recorded: Recorded) -> None:
    document = event_document(event_type=TYPE)

    def overtaken(event: Event) -> None:
        recorded.effects(event)
        ProcessedEvent.objects.filter(event_id=event.event_id).update(fence=9)

    handlers._handlers[TYPE] = Handler(effects=overtaken, notify=recorded.notify)

    with pytest.raises(RetryLater):
        run(document)

    assert recorded.calls == ["effects"]
    assert effects_of(document) == 0


def test_a_worker_that_lost_its_claim_after_the_effects_sends_no_email(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = event_document(event_type=TYPE)
    commit = Claim.commit_effects

    def stopped_after_the_commit(held: Claim) -> None:
        commit(held)
        ProcessedEvent.objects.filter(event_id=held.event_id).update(fence=9)

    monkeypatch.setattr(Claim, "commit_effects", stopped_after_the_commit)

    with pytest.raises(RetryLater):
        run(document)

    assert recorded.calls == ["effects"]


def test_a_failure_that_cannot_be_recorded_waits_for_the_lease(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = event_document(event_type=TYPE)
    recorded.effects_errors = [KeyError("x")]

    def fail(*_: object) -> None:
        raise DataError("out of range")

    monkeypatch.setattr(Claim, "fail", fail)

    with pytest.raises(RetryLater) as kept:
        run(document)

    assert kept.value.after == 101


def cut_off(*_: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("point", ["prepare", "effects", "notify", "fail"])
def test_a_session_that_is_cut_off_in_the_middle_leaves_the_rest_to_a_try_in_place(
    point: str, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = event_document(event_type=TYPE)
    steps: dict[str, Any] = {"effects": recorded.effects, "notify": recorded.notify}
    with monkeypatch.context() as patch:
        if point == "fail":
            recorded.effects_errors = [KeyError("x")]
            patch.setattr(Claim, "fail", cut_off)
        else:
            steps[point] = cut_off
        patch.setitem(handlers._handlers, TYPE, Handler(**steps))
        with pytest.raises(Unavailable) as waits:
            run(document)

    # The lease of its own claim is not waited for; that of another's is.
    with pytest.raises(RetryLater):
        run(document)
    with pytest.raises(RetryLater):
        run(document, resumes=waits.value.resumes + 30)
    assert run(document, resumes=waits.value.resumes) is EventOutcome.DONE
    assert recorded.calls[-1] == "email"
    assert effects_of(document) == 1
    assert (processed(document).attempts, processed(document).receive_count) == (2, 1)


@pytest.mark.django_db(transaction=True)
def test_an_event_that_has_the_session_cut_off_each_time_fails_as_any_other(
    recorded: Recorded,
) -> None:
    document = event_document(event_type=TYPE)
    handlers._handlers[TYPE] = Handler(effects=cut_off)
    resumes = None
    for _ in range(2):
        with pytest.raises(Unavailable) as waits:
            run(document, resumes=resumes)
        resumes = waits.value.resumes

    with pytest.raises(OperationalError):
        run(document, resumes=resumes)

    assert processed(document).status == "failed"
    assert processed(document).last_error.startswith("OperationalError")
    with pytest.raises(Unavailable):
        run(document, receive_count=2)


@pytest.mark.django_db(transaction=True)
def test_an_event_that_was_tried_often_has_its_tries_in_place_all_the_same(
    recorded: Recorded,
) -> None:
    document = event_document(event_type=TYPE)
    recorded.effects_errors = [KeyError("x")] * 20
    for _ in range(20):
        with pytest.raises(KeyError):
            run(document)
    handlers._handlers[TYPE] = Handler(effects=cut_off)

    with pytest.raises(Unavailable):
        run(document)


def test_an_event_type_has_one_handler(recorded: Recorded) -> None:
    with pytest.raises(DuplicateHandler):
        handlers.register(TYPE, Handler(effects=recorded.effects))


@pytest.mark.django_db(transaction=True)
def test_what_is_prepared_without_a_transaction_reaches_the_effects_once(
    recorded: Recorded,
) -> None:
    seen: list[Any] = []

    def prepare(event: Event) -> str:
        seen.append(("prepare", connection.in_atomic_block))
        return "the gateway's word"

    def effects(event: Event, prepared: str) -> None:
        seen.append((prepared, connection.in_atomic_block))

    handlers._handlers[TYPE] = Handler(effects=effects, notify=recorded.notify, prepare=prepare)
    recorded.notify_errors = [RuntimeError("no email")]
    document = event_document(event_type=TYPE)

    with pytest.raises(RuntimeError, match="no email"):
        run(document)
    run(document)

    assert seen == [("prepare", False), ("the gateway's word", True)]


def test_an_event_whose_preparation_fails_has_no_effects(recorded: Recorded) -> None:
    def prepare(event: Event) -> None:
        raise RuntimeError("the gateway is away")

    handlers._handlers[TYPE] = Handler(effects=recorded.effects, prepare=prepare)
    document = event_document(event_type=TYPE)

    with pytest.raises(RuntimeError, match="the gateway is away"):
        run(document)

    assert recorded.calls == []
    assert processed(document).status == "failed"


@pytest.mark.django_db(transaction=True)
def test_effects_that_need_preparing_are_rolled_back_and_run_again(recorded: Recorded) -> None:
    seen: list[Any] = []

    def prepare(event: Event) -> str:
        seen.append(("prepare", connection.in_atomic_block))
        return "the gateway's word"

    def effects(event: Event, prepared: str = "") -> None:
        recorded.effects(event)
        seen.append((prepared, connection.in_atomic_block))
        if not prepared:
            raise NotPrepared(event.event_id)

    handlers._handlers[TYPE] = Handler(effects=effects, prepare=prepare, prepares_on_demand=True)
    document = event_document(event_type=TYPE)

    assert run(document) == EventOutcome.DONE

    assert seen == [("", True), ("prepare", False), ("the gateway's word", True)]
    assert effects_of(document) == 1


def test_a_fenced_notification_gets_the_claim_to_make_sure_of(recorded: Recorded) -> None:
    held_fences: list[int] = []

    def notify(event: Event, *, held: Claim) -> None:
        ProcessedEvent.objects.filter(event_id=held.event_id).update(fence=9)
        held_fences.append(held.fence)
        held.check()

    handlers._handlers[TYPE] = Handler(effects=recorded.effects, notify=notify, fenced=True)

    with pytest.raises(RetryLater):
        run(event_document(event_type=TYPE))

    assert held_fences == [1]
