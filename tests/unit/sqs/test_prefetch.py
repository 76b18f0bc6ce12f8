"""How many messages a worker holds and fetches ahead, and for how long it keeps those."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skincare.sqs import prefetch
from skincare.sqs.poller import BUFFER_POLL
from skincare.sqs.prefetch import (
    MAX_BUFFERED,
    MAX_WAIT,
    TARGET_WAIT,
    PrefetchBudget,
    PrefetchBuffer,
)


def paced(*seconds: float) -> PrefetchBuffer[str]:
    buffer: PrefetchBuffer[str] = PrefetchBuffer()
    for spent in seconds:
        buffer.observe(spent)
    return buffer


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(prefetch.time, "monotonic", lambda: now[0])
    return now


def test_nothing_is_fetched_ahead_before_a_task_has_ended() -> None:
    assert paced().limit(5) == 0


def test_nothing_is_fetched_ahead_of_tasks_that_take_their_time() -> None:
    assert paced(TARGET_WAIT).limit(5) == 0
    assert paced(60.0).limit(32) == 0


def test_as_many_are_fetched_as_will_start_soon() -> None:
    assert paced(0.05).limit(5) == 10
    assert paced(0.08).limit(2) == 2


def test_four_polls_of_messages_are_the_most() -> None:
    assert paced(0.0).limit(32) == MAX_BUFFERED


def test_one_slow_task_is_lowers_the_limit_at_once_and_many_fast_ones_raise_it() -> None:
    assert paced(*[0.002] * 50, 1.0).limit(5) == 0
    assert paced(1.0, *[0.002] * 10).limit(5) == 0
    assert paced(1.0, *[0.002] * 50).limit(5) == MAX_BUFFERED


def test_the_oldest_is_next() -> None:
    buffer = paced()
    assert buffer.pop() is None
    buffer.add("first")
    buffer.add("second")

    assert list(buffer) == ["first", "second"]
    assert buffer.pop() == "first"
    assert len(buffer) == 1
    assert buffer.clear() == ["second"]
    assert not buffer


def test_a_message_goes_back_when_our_own_poll_is_over() -> None:
    assert MAX_WAIT > BUFFER_POLL


def test_the_time_left_is_the_oldest_ones(clock: list[float]) -> None:
    buffer = paced()
    buffer.add("first")
    clock[0] += 0.6
    buffer.add("second")

    assert buffer.time_left == pytest.approx(MAX_WAIT - 0.6)
    buffer.pop()
    assert buffer.time_left == pytest.approx(MAX_WAIT)


def test_after_waiting_in_the_buffer_for_too_long_nothing_is_fetched_ahead() -> None:
    buffer = paced(0.001)
    buffer.add("first")
    buffer.add("second")

    assert buffer.expire() == ["first", "second"]
    assert not buffer
    assert buffer.limit(5) == 0


def test_one_queue_gets_all_free_slots_up_to_ten() -> None:
    assert PrefetchBudget(capacity=5, held=2).reserve("a") == 3
    assert PrefetchBudget(capacity=32).reserve("a") == 10


def test_a_full_worker_asks_for_nothing() -> None:
    assert PrefetchBudget(capacity=5, held=5).reserve("a") == 0
    assert PrefetchBudget(capacity=5, held=7).reserve("a") == 0


def test_a_queue_gets_what_the_polls_of_others_leave() -> None:
    budget = PrefetchBudget(capacity=16)
    assert budget.reserve("a") == 10
    assert budget.reserve("b") == 6


def test_a_poll_that_hangs_leaves_one_slot_to_the_other_queue() -> None:
    budget = PrefetchBudget(capacity=5)
    assert budget.reserve("hangs") == 5
    assert budget.reserve("other") == 1
    budget.unreserve("hangs")
    assert budget.reserve("other") == 5


def test_a_full_worker_asks_for_what_may_wait() -> None:
    assert PrefetchBudget(capacity=5, held=5, buffer_limit=20).reserve("a") == 10
    assert PrefetchBudget(capacity=5, held=5, buffer_limit=8).reserve("a") == 8


def test_for_free_slots_what_will_start_soon_is_fetched_along() -> None:
    assert PrefetchBudget(capacity=5, held=3, buffer_limit=20).reserve("a") == 10
    assert PrefetchBudget(capacity=5, held=3, buffer_limit=4).reserve("a") == 6
    assert PrefetchBudget(capacity=5, held=3, buffer_limit=0).reserve("a") == 2


def test_there_is_another_full_poll_only_where_there_is_room_for_ten_more() -> None:
    budget = PrefetchBudget(capacity=5, held=5, buffer_limit=40, buffered=10)
    assert budget.reserve("a") == 10
    assert [budget.reserve_extra() for _ in range(3)] == [True, True, False]

    budget.unreserve_extra()

    assert budget.reserve_extra()
    assert not PrefetchBudget(capacity=5, held=0).reserve_extra()


def test_a_full_worker_does_not_ask_while_half_of_it_still_waits() -> None:
    assert PrefetchBudget(capacity=5, held=5, buffer_limit=20, buffered=10).reserve("a") == 0
    assert PrefetchBudget(capacity=5, held=5, buffer_limit=20, buffered=9).reserve("a") == 10
    assert PrefetchBudget(capacity=5, held=4, buffer_limit=20, buffered=20).reserve("a") == 1


@given(
    capacity=st.integers(1, 40),
    held=st.integers(0, 50),
    buffered=st.integers(0, 30),
    buffer_limit=st.integers(0, 20),
    queues=st.lists(st.sampled_from("abc"), max_size=20),
)
def test_no_more_is_asked_for_than_one_for_each_queue_beyond_what_there_is_room_for(
    capacity: int, held: int, buffered: int, buffer_limit: int, queues: list[str]
) -> None:
    budget = PrefetchBudget(
        capacity=capacity, held=held, buffered=buffered, buffer_limit=buffer_limit
    )
    reserved = {queue: budget.reserve(queue) for queue in queues}

    assert all(0 <= count <= 10 for count in reserved.values())
    room = budget.free + max(buffer_limit - buffered, 0)
    assert sum(reserved.values()) <= room + max(len(reserved) - 1, 0)


def test_queues_share_the_slots_and_what_one_leaves_goes_to_the_next() -> None:
    budget = PrefetchBudget(capacity=5, queues=2)
    assert [budget.reserve("a"), budget.reserve("b")] == [3, 2]

    budget.unreserve("a")
    budget.held = 2
    assert budget.reserve("a") == 1

    idle = PrefetchBudget(capacity=16, queues=2)
    assert [idle.reserve("a"), idle.reserve("b")] == [8, 8]


def test_a_queue_that_is_idle_leaves_at_least_one_slot_to_the_other() -> None:
    budget = PrefetchBudget(capacity=2, queues=2)
    assert [budget.reserve("idle"), budget.reserve("busy")] == [1, 1]
    budget.unreserve("busy")
    budget.held = 1

    assert budget.reserve("busy") == 1
