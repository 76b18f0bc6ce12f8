"""The claim on real PostgreSQL: each row of its table, and what happens when many ask at once."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from skincare.events.claim import Claim, Conflict, Duplicate, InProgress, claim, reopen
from skincare.events.exceptions import LostClaim, UnknownEvent
from skincare.events.models import ProcessedEvent
from skincare.events.schema import Event, payload_hash
from skincare.local.deadline import wait_until
from tests.integration.events.event_documents import new_event
from tests.integration.orders.together import somebody_waits_for_a_lock

pytestmark = pytest.mark.django_db


def claimed(event: Event, **arguments: Any) -> Claim:
    answer = claim(event, worker="w1", **arguments)
    assert isinstance(answer, Claim)
    return answer


def row(event: Event) -> ProcessedEvent:
    return ProcessedEvent.objects.get(event_id=event.event_id)


def end_lease(event: Event) -> None:
    ProcessedEvent.objects.filter(event_id=event.event_id).update(
        lease_expires_at=timezone.now() - timedelta(seconds=1)
    )


def test_a_new_event_is_claimed_with_all_that_is_known_of_it() -> None:
    event = new_event(extra="kept")

    held = claimed(event, receive_count=3)

    assert (held.attempts, held.fence, held.effects_done) == (1, 1, False)
    stored = row(event)
    assert stored.status == ProcessedEvent.Status.PROCESSING
    assert stored.payload == event.document()
    assert (stored.receive_count, stored.worker) == (3, "w1")
    assert (stored.event_type, stored.order_id, stored.payment_id, stored.created_at) == (
        event.event_type,
        event.order_id,
        event.payment_id,
        event.created,
    )
    assert stored.lease_expires_at is not None
    lease = stored.lease_expires_at - stored.claimed_at
    assert 99 < lease.total_seconds() < 101


@pytest.mark.parametrize("end", [Claim.finish, lambda held: held.skip("nobody handles it")])
def test_a_finished_event_is_a_duplicate(end: Any) -> None:
    event = new_event()
    end(claimed(event))

    assert claim(event, worker="w2") == Duplicate()
    assert row(event).attempts == 1


def test_an_event_in_progress_stays_with_its_worker() -> None:
    event = new_event()
    claimed(event)

    answer = claim(event, worker="w2")

    assert isinstance(answer, InProgress)
    assert 95 < answer.seconds_left <= 100
    assert row(event).worker == "w1"


def test_a_dead_workers_event_is_taken_over_with_a_new_fence() -> None:
    event = new_event()
    lost = claimed(event)
    end_lease(event)

    first = row(event)

    held = claimed(event, receive_count=2)

    assert (held.attempts, held.fence) == (2, 2)
    taken_over = row(event)
    assert taken_over.claimed_at > first.claimed_at
    assert taken_over.first_claimed_at == first.first_claimed_at
    with pytest.raises(LostClaim):
        lost.commit_effects()
    with pytest.raises(LostClaim):
        lost.finish()
    with pytest.raises(LostClaim):
        lost.fail("late")
    assert row(event).status == ProcessedEvent.Status.PROCESSING


def test_a_failed_event_is_claimed_again_at_once() -> None:
    event = new_event()
    claimed(event).fail("SMTP: 421 try again")

    held = claimed(event)

    assert (held.attempts, held.fence, held.effects_done) == (2, 2, False)
    assert row(event).last_error == "SMTP: 421 try again"


@pytest.mark.parametrize("died", [True, False], ids=["its worker died", "its email failed"])
def test_an_event_whose_effects_are_done_has_only_its_email_to_come(died: bool) -> None:
    event = new_event()
    held = claimed(event)
    held.commit_effects()
    if died:
        end_lease(event)
    else:
        held.fail("no email")

    again = claimed(event)

    assert again.effects_done
    assert row(event).status == ProcessedEvent.Status.EFFECTS_DONE


@pytest.mark.parametrize("state", ["processing", "failed", "done"])
def test_another_payload_under_the_same_id_is_a_conflict_in_every_state(state: str) -> None:
    event = new_event()
    held = claimed(event)
    if state == "failed":
        held.fail("x")
    if state == "done":
        held.finish()
    before = ProcessedEvent.objects.filter(event_id=event.event_id).values().get()

    other = new_event(event_id=event.event_id, amount_rupiah=1)

    assert claim(other, worker="w2") == Conflict()
    assert ProcessedEvent.objects.filter(event_id=event.event_id).values().get() == before


OTHER_SPELLING = "2026-11-10T17:00:00Z"  # of the instant that `event_document` has


@pytest.mark.parametrize("state", ["processing", "failed", "done"])
def test_another_spelling_of_its_instant_is_the_same_event_in_every_state(state: str) -> None:
    event = new_event()
    held = claimed(event)
    if state == "failed":
        held.fail("x")
    if state == "done":
        held.finish()

    answer = claim(new_event(**{**event.document(), "created_at": OTHER_SPELLING}), worker="w2")

    expected = {"processing": InProgress, "failed": Claim, "done": Duplicate}[state]
    assert isinstance(answer, expected)
    assert row(event).payload_hash == payload_hash(event)
    if isinstance(answer, Claim):
        answer.finish()
    assert isinstance(claim(event, worker="w3"), InProgress if state == "processing" else Duplicate)


def test_a_row_of_an_earlier_release_is_known_by_its_hash() -> None:
    event = new_event()
    claimed(event).finish()
    unreadable = {**event.document(), "created_at": "0001-01-01T00:00:00Z"}
    ProcessedEvent.objects.filter(event_id=event.event_id).update(payload=unreadable)

    assert claim(event, worker="w2") == Duplicate()
    assert claim(new_event(**{**event.document(), "user_id": "b-1"}), worker="w2") == Conflict()


def test_of_a_long_worker_name_the_beginning_is_kept() -> None:
    event = new_event()

    claim(event, worker="w" * 255 + "x")

    assert row(event).worker == "w" * 255


@pytest.mark.django_db(transaction=True)
def test_who_waited_for_a_claim_that_was_just_made_asks_again() -> None:
    event = new_event()
    statements: list[str] = []

    def ask() -> object:
        def note(execute: Any, sql: str, *rest: Any) -> Any:
            statements.append(sql)
            return execute(sql, *rest)

        try:
            with connection.execute_wrapper(note):
                return claim(event, worker="w2")
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as elsewhere:
        with transaction.atomic():
            claimed(event)
            waiting = elsewhere.submit(ask)
            # Its statement has its snapshot, without our row, and waits for us.
            wait_until(somebody_waits_for_a_lock, seconds=30, what="the other to wait")
        answer = waiting.result()

    assert isinstance(answer, InProgress)
    assert len(statements) == 2


def test_a_finished_claim_cannot_be_ended_twice() -> None:
    event = new_event()
    held = claimed(event)
    held.finish()

    with pytest.raises(LostClaim):
        held.fail("too late")
    assert row(event).status == ProcessedEvent.Status.DONE


def test_a_reopened_event_is_processed_from_the_start() -> None:
    event = new_event()
    held = claimed(event)
    held.commit_effects()
    held.finish()

    reopen(event.event_id)

    again = claimed(event)
    assert (again.effects_done, again.fence) == (False, 3)
    with pytest.raises(UnknownEvent):
        reopen("unknown")


@pytest.mark.django_db(transaction=True)
def test_of_twenty_workers_one_gets_the_claim() -> None:
    event = new_event()

    def ask(number: int) -> type:
        try:
            return type(claim(event, worker=f"w{number}"))
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as workers:
        answers = Counter(workers.map(ask, range(20)))

    assert answers == {Claim: 1, InProgress: 19}
    assert row(event).attempts == 1


@pytest.mark.django_db(transaction=True)
def test_of_twenty_workers_one_takes_a_dead_workers_event() -> None:
    event = new_event()
    claimed(event)
    end_lease(event)

    def ask(number: int) -> type:
        try:
            return type(claim(event, worker=f"w{number}"))
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as workers:
        answers = Counter(workers.map(ask, range(20)))

    assert answers == {Claim: 1, InProgress: 19}
    assert (row(event).attempts, row(event).fence) == (2, 2)


@pytest.mark.django_db(transaction=True)
def test_a_claim_taken_over_during_the_effects_rolls_them_back() -> None:
    event, other = new_event(), new_event()
    lost = claimed(event)
    end_lease(event)

    with pytest.raises(LostClaim), transaction.atomic():
        claimed(other)  # stands for the effects
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(_take_over, event).result()
        lost.commit_effects()

    assert not ProcessedEvent.objects.filter(event_id=other.event_id).exists()


def _take_over(event: Event) -> None:
    try:
        claimed(event)
    finally:
        connection.close()
