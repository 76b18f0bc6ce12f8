"""Polling goes on, whatever happens to an answer, a callback or a timer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import pytest

from skincare.sqs import SQSPolicy
from skincare.sqs.async_client import SQSError
from skincare.sqs.decoder import ReceivedMessage
from skincare.sqs.policy import Observer
from skincare.sqs.poller import Poller, PollerState
from skincare.sqs.prefetch import PrefetchBudget
from tests.unit.sqs.loop import Loop

Receive = Callable[[list[ReceivedMessage]], None]


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def received() -> list[ReceivedMessage]:
    return []


def make_poller(
    loop: Loop,
    receive: Receive,
    observer: Observer | None = None,
    budget: PrefetchBudget | None = None,
) -> Poller:
    poller = Poller(
        loop,  # type: ignore[arg-type]
        loop,  # type: ignore[arg-type]
        queue="q",
        url="http://sqs/1/q",
        policy=SQSPolicy(),
        budget=budget or PrefetchBudget(capacity=5),
        counts=Counter(),
        observer=observer or Observer(),
        receive=receive,
        release=receive,
    )
    poller.start()
    return poller


def message(**attributes: object) -> dict[str, object]:
    return {"MessageId": "m", "ReceiptHandle": "h", "Body": "{}", "Attributes": attributes}


def receives(loop: Loop) -> int:
    return sum(action == "ReceiveMessage" for action, _, _ in loop.calls)


def pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    later = time.monotonic() + seconds
    monkeypatch.setattr(time, "monotonic", lambda: later)


def test_an_error_in_a_callback_is_followed_by_another_poll(loop: Loop) -> None:
    def fail(_: list[ReceivedMessage]) -> None:
        raise ZeroDivisionError

    make_poller(loop, fail)
    loop.fire()
    loop.answer({"Messages": [message()]})
    loop.fire()

    assert receives(loop) == 2


def test_an_error_while_an_answer_is_read_is_followed_by_another_poll(
    loop: Loop, received: list[ReceivedMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OverflowError

    make_poller(loop, received.extend)
    monkeypatch.setattr("skincare.sqs.poller.read_received", fail)
    loop.fire()
    loop.answer({"Messages": [message()]})
    monkeypatch.undo()
    loop.fire()
    loop.answer({"Messages": [message()]})

    assert len(received) == 1


@pytest.mark.parametrize("count", [float("inf"), float("-inf"), float("nan"), "9" * 5000, 10**400])
def test_a_receive_count_that_is_none_is_the_first(
    loop: Loop, received: list[ReceivedMessage], count: object
) -> None:
    """An answer's `1e999` is infinite for Python's JSON, which no integer is."""
    make_poller(loop, received.extend)
    loop.fire()
    loop.answer({"Messages": [message(ApproximateReceiveCount=count)]})
    loop.fire()

    assert received[0].receive_count >= 1
    assert receives(loop) == 2


def test_an_observer_that_fails_does_not_end_the_polling(loop: Loop) -> None:
    class Broken(Observer):
        def poll_failed(self, queue: str) -> None:
            raise ZeroDivisionError

    make_poller(loop, lambda _: None, Broken())
    loop.fire()
    loop.answer(SQSError(503, "ServiceUnavailable"))
    loop.fire()

    assert receives(loop) == 2


def test_a_poll_whose_answer_was_lost_is_given_up(
    loop: Loop, received: list[ReceivedMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    poller = make_poller(loop, received.extend)
    loop.fire()
    poller.supervise()
    assert poller.state is PollerState.POLLING

    pass_time(monkeypatch, 40)
    poller.supervise()
    loop.fire()

    assert receives(loop) == 2
    loop.calls[0][2]({"Messages": [message()]})  # it comes after all: SQS will show it again
    assert received == []


def test_a_poll_whose_timer_was_lost_is_begun(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    poller = make_poller(loop, lambda _: None)
    loop.timers.clear()
    poller.supervise()
    assert loop.timers == []

    pass_time(monkeypatch, 15)
    poller.supervise()
    loop.fire()

    assert receives(loop) == 1


def test_a_worker_that_leaves_does_not_wait_for_a_lost_answer(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    poller = make_poller(loop, lambda _: None)
    loop.fire()
    poller.leave()
    pass_time(monkeypatch, 40)
    poller.supervise()
    poller.supervise()

    assert poller.state is PollerState.STOPPED


def test_a_paused_queue_is_polled_again_after_resume_only(
    loop: Loop, received: list[ReceivedMessage]
) -> None:
    poller = make_poller(loop, received.extend)
    loop.fire()
    poller.pause()
    loop.answer({"Messages": [message()]})
    poller.slot_freed()
    poller.supervise()
    assert (len(received), receives(loop), loop.timers) == (1, 1, [])
    assert poller.unanswered_since is None

    poller.resume()
    loop.fire()

    assert receives(loop) == 2


@pytest.fixture
def backlogged(loop: Loop, received: list[ReceivedMessage]) -> tuple[Poller, PrefetchBudget]:
    """A poller whose first poll came back full, with room for three more."""
    budget = PrefetchBudget(capacity=5, held=5, buffer_limit=40)
    poller = make_poller(loop, received.extend, budget=budget)
    loop.fire()
    loop.answer({"Messages": [message()] * 10})
    loop.fire()
    return poller, budget


def test_up_to_three_polls_are_in_flight_while_they_come_back_full(
    loop: Loop, backlogged: tuple[Poller, PrefetchBudget]
) -> None:
    assert receives(loop) == 1 + 3

    loop.calls[1][2]({"Messages": [message()] * 10})
    loop.fire()

    assert receives(loop) == 1 + 3 + 1


def test_after_a_poll_that_did_not_come_back_full_one_is_enough(
    loop: Loop, backlogged: tuple[Poller, PrefetchBudget]
) -> None:
    for _, _, answer in loop.calls[1:4]:
        answer({"Messages": [message()] * 9})
    loop.fire()

    assert receives(loop) == 1 + 3 + 1


@pytest.mark.parametrize("error", [SQSError(503, "ServiceUnavailable"), SQSError(0, "NoAnswer")])
def test_after_a_failure_one_poll_is_enough(
    loop: Loop, backlogged: tuple[Poller, PrefetchBudget], error: SQSError
) -> None:
    timers = len(loop.timers)
    for _, _, answer in loop.calls[1:4]:
        answer(error)

    assert len([timer for timer in loop.timers[timers:] if not timer.cancelled]) == 1


def test_without_room_for_ten_more_there_is_one_poll(
    loop: Loop, received: list[ReceivedMessage]
) -> None:
    budget = PrefetchBudget(capacity=5, held=5, buffer_limit=19)
    make_poller(loop, received.extend, budget=budget)
    loop.fire()
    loop.answer({"Messages": [message()] * 10})
    loop.fire()

    assert receives(loop) == 2


def test_what_all_polls_in_flight_bring_after_leaving_is_released(
    loop: Loop, received: list[ReceivedMessage], backlogged: tuple[Poller, PrefetchBudget]
) -> None:
    poller, budget = backlogged
    poller.leave()
    received.clear()
    for _, _, answer in loop.calls[1:4]:
        assert poller.state is PollerState.LEAVING
        answer({"Messages": [message()] * 10})

    assert poller.state is PollerState.STOPPED
    assert len(received) == 30
    assert budget.reserve("q") == 10  # nothing is left reserved


def test_a_pause_begins_none_of_them(
    loop: Loop, received: list[ReceivedMessage], backlogged: tuple[Poller, PrefetchBudget]
) -> None:
    poller, _ = backlogged
    poller.pause()
    received.clear()
    for _, _, answer in loop.calls[1:4]:
        answer({"Messages": [message()] * 10})
    poller.slot_freed()

    assert (receives(loop), len(received)) == (4, 30)


def test_the_lost_answer_of_another_poll_gives_its_room_back(
    loop: Loop,
    backlogged: tuple[Poller, PrefetchBudget],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    poller, budget = backlogged
    pass_time(monkeypatch, 40)
    poller.supervise()

    assert budget.reserve("q") == 10
    assert [budget.reserve_extra() for _ in range(4)] == [True, True, True, False]
