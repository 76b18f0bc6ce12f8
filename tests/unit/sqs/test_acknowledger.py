"""Batched acknowledgements: what is sent when, what is sent again, and what an answer means."""

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skincare.sqs.acknowledger import Acknowledgement, Deletes, batch_errors
from skincare.sqs.async_client import NO_ANSWER, SQSError
from skincare.sqs.backoff import full_jitter
from skincare.sqs.decoder import ReceivedMessage
from skincare.sqs.policy import Observer
from tests.unit.sqs.documents import json_values
from tests.unit.sqs.loop import Loop, failed, succeeded


def message(age: float = 0.0) -> ReceivedMessage:
    """A message that came `age` seconds ago."""
    received_at = time.monotonic() - age
    return ReceivedMessage("q", "m", "h", 1, "{}", received_at, invisible_until=received_at + 120)


def test_entries_that_succeeded_have_no_error() -> None:
    answer = {"Successful": [{"Id": "0"}, {"Id": "1"}, {"Id": "2"}], "Failed": []}

    assert batch_errors(answer, 3) == {}


def test_entries_that_failed_are_told_by_their_position() -> None:
    answer = {
        "Successful": [{"Id": "0"}],
        "Failed": [{"Id": "1", "Code": "InternalError", "Message": "m", "SenderFault": False}],
    }

    assert batch_errors(answer, 2) == {1: SQSError(200, "InternalError", "m")}


def test_entries_that_the_answer_does_not_name_have_failed() -> None:
    errors = batch_errors({"Successful": [{"Id": "1"}]}, 3)

    assert {position: error.code for position, error in errors.items()} == {
        0: NO_ANSWER,
        2: NO_ANSWER,
    }


def test_a_call_that_failed_failed_for_all() -> None:
    error = SQSError(503, "ServiceUnavailable")

    assert batch_errors(error, 2) == {0: error, 1: error}


@given(answer=st.dictionaries(st.sampled_from(["Successful", "Failed"]), json_values))
def test_any_answer_can_be_read(answer: dict[str, object]) -> None:
    errors = batch_errors(answer, 10)

    assert set(errors) <= set(range(10))


@pytest.mark.parametrize(("wait", "seconds"), [(10.0, 10), (0.5, 1), (0.0, 0), (-3.0, 0)])
def test_the_visibility_timeout_is_what_is_left_of_the_wait(wait: float, seconds: int) -> None:
    acknowledgement = Acknowledgement(message(), visible_at=time.monotonic() + wait)

    assert acknowledgement.visibility_timeout == seconds


def test_the_visibility_timeout_is_one_that_sqs_takes() -> None:
    """Not more than 12 hours since the receive."""
    far = time.monotonic() + 1e6

    assert Acknowledgement(message(age=99.5), far).visibility_timeout == 43_100
    assert Acknowledgement(message(age=50_000), far).visibility_timeout == 0


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def denials() -> list[str]:
    return []


@pytest.fixture
def counts() -> Counter[str]:
    return Counter()


@pytest.fixture
def deletes(loop: Loop, counts: Counter[str], denials: list[str]) -> Deletes:
    class Listener(Observer):
        def acknowledgement_denied(self, action: str) -> None:
            denials.append(action)

    return Deletes(
        loop,  # type: ignore[arg-type]
        loop,  # type: ignore[arg-type]
        url="http://sqs/1/q",
        linger=0.1,
        call_timeout=5.0,
        counts=counts,
        observer=Listener(),
    )


def add(deletes: Deletes, count: int) -> None:
    for _ in range(count):
        deletes.add(Acknowledgement(message()))


def test_a_batch_waits_for_company_and_a_full_one_does_not(loop: Loop, deletes: Deletes) -> None:
    add(deletes, 9)
    assert loop.calls == []
    assert [timer.delay for timer in loop.timers] == [0.1]

    add(deletes, 1)

    [(action, entries, _)] = loop.calls
    assert action == "DeleteMessageBatch"
    assert [entry["Id"] for entry in entries] == [str(n) for n in range(10)]
    assert loop.timers[0].cancelled


def test_what_sqs_confirms_is_counted_and_forgotten(
    loop: Loop, deletes: Deletes, counts: Counter[str]
) -> None:
    add(deletes, 3)
    loop.fire()
    assert len(deletes) == 3

    loop.answer(succeeded(3))

    assert (len(deletes), deletes.unfinished, counts["deleted"]) == (0, [], 3)
    assert loop.timers == []


def test_entries_that_fail_are_not_counted_and_only_they_are_sent_again(
    loop: Loop, deletes: Deletes, counts: Counter[str]
) -> None:
    add(deletes, 4)
    loop.fire()
    loop.answer(failed("InternalError", 1, 3, of=4))
    assert counts["deleted"] == 2
    assert len(deletes) == len(deletes.unfinished) == 2

    loop.fire()  # the back-off
    loop.fire()  # the wait for company

    assert len(loop.calls[-1][1]) == 2
    loop.answer(succeeded(2))
    assert (len(deletes), counts["deleted"]) == (0, 4)


@pytest.mark.parametrize("code", ["ReceiptHandleIsInvalid", "InvalidIdFormat"])
def test_a_stale_handle_is_not_tried_again(
    loop: Loop, deletes: Deletes, counts: Counter[str], code: str
) -> None:
    add(deletes, 1)
    loop.fire()
    loop.answer(failed(code, 0))

    assert (len(deletes), counts["deleted"], loop.timers) == (0, 0, [])


def test_a_message_that_is_not_ours_any_more_is_not_tried_again(
    loop: Loop, deletes: Deletes
) -> None:
    deletes.add(Acknowledgement(message(age=121)))
    loop.fire()
    loop.answer(failed("InternalError", 0))

    assert (len(deletes), loop.timers) == (0, [])


def test_each_failure_in_a_row_raises_the_backoff(
    loop: Loop, deletes: Deletes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "skincare.sqs.acknowledger.full_jitter",
        lambda failures, backoff: full_jitter(failures, backoff, lambda _low, high: high),
    )
    add(deletes, 1)
    loop.fire()
    waits = []
    for _ in range(7):
        loop.answer(SQSError(503, "ServiceUnavailable"))
        waits.append(loop.fire())
        loop.fire()

    assert waits == [0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]


@pytest.mark.parametrize("state", ["collected", "in a call", "waiting for a retry"])
def test_what_is_not_confirmed_survives_the_end_of_the_loop(
    loop: Loop, deletes: Deletes, state: str
) -> None:
    add(deletes, 2)
    if state != "collected":
        loop.fire()
    if state == "waiting for a retry":
        loop.answer(SQSError(0, NO_ANSWER))
    calls = len(loop.calls)

    deletes.freeze()
    add(deletes, 1)

    assert len(deletes.unfinished) == 3
    assert len(loop.calls) == calls


def test_a_denial_is_reported_and_forgotten_when_a_call_succeeds(
    loop: Loop, deletes: Deletes, counts: Counter[str], denials: list[str]
) -> None:
    add(deletes, 2)
    loop.fire()
    loop.answer(failed("AccessDenied", 0, 1, of=2))
    assert deletes.denied
    assert (denials, counts["deleted_denied"]) == (["DeleteMessageBatch"], 2)

    loop.fire()
    loop.fire()
    loop.answer(succeeded(2))

    assert not deletes.denied


def test_an_error_while_an_answer_is_read_loses_no_entry(
    loop: Loop, deletes: Deletes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    add(deletes, 2)
    loop.fire()
    monkeypatch.setattr("skincare.sqs.acknowledger.batch_errors", fail)
    loop.answer(succeeded(2))
    monkeypatch.undo()
    assert len(deletes) == 2

    loop.fire()
    loop.fire()
    loop.answer(succeeded(2))

    assert (len(loop.calls), len(deletes)) == (2, 0)


@pytest.mark.parametrize("state", ["collected", "in a call", "waiting for a retry"])
def test_a_lost_answer_or_timer_loses_no_entry(
    loop: Loop, deletes: Deletes, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    add(deletes, 2)
    if state != "collected":
        loop.fire()
    if state == "waiting for a retry":
        loop.answer(SQSError(0, NO_ANSWER))
    calls = len(loop.calls)
    loop.timers.clear()

    later = time.monotonic() + 20
    monkeypatch.setattr(time, "monotonic", lambda: later)
    deletes.supervise()
    while loop.timers and len(loop.calls) == calls:
        loop.fire()

    assert len(loop.calls) == calls + 1
    loop.answer(succeeded(2))
    assert len(deletes) == 0
