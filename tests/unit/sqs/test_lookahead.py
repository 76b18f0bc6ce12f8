"""How many messages a worker fetches before it can start them, and for how long it keeps them."""

from __future__ import annotations

import pytest

from skincare.sqs import lookahead
from skincare.sqs.lookahead import MAX_AHEAD, MAX_WAIT, WAIT, Lookahead
from skincare.sqs.poller import AHEAD_POLL


def paced(*seconds: float) -> Lookahead[str]:
    ahead: Lookahead[str] = Lookahead()
    for spent in seconds:
        ahead.learn(spent)
    return ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(lookahead.time, "monotonic", lambda: now[0])
    return now


def test_nothing_is_fetched_ahead_before_a_task_has_ended() -> None:
    assert paced().limit(5) == 0


def test_nothing_is_fetched_ahead_of_tasks_that_take_their_time() -> None:
    assert paced(WAIT).limit(5) == 0
    assert paced(60.0).limit(32) == 0


def test_as_many_are_fetched_as_will_start_soon() -> None:
    assert paced(0.05).limit(5) == 10
    assert paced(0.08).limit(2) == 2


def test_two_polls_of_messages_are_the_most() -> None:
    assert paced(0.0).limit(32) == MAX_AHEAD


def test_one_slow_task_is_believed_at_once_and_fast_ones_by_and_by() -> None:
    assert paced(*[0.002] * 50, 1.0).limit(5) == 0
    assert paced(1.0, *[0.002] * 10).limit(5) == 0
    assert paced(1.0, *[0.002] * 50).limit(5) == MAX_AHEAD


def test_the_oldest_is_next() -> None:
    ahead = paced()
    assert ahead.next() is None
    ahead.add("first")
    ahead.add("second")

    assert list(ahead) == ["first", "second"]
    assert ahead.next() == "first"
    assert len(ahead) == 1
    assert ahead.clear() == ["second"]
    assert not ahead


def test_a_message_goes_back_when_our_own_poll_is_over() -> None:
    assert MAX_WAIT > AHEAD_POLL


def test_patience_is_the_oldest_ones(clock: list[float]) -> None:
    ahead = paced()
    ahead.add("first")
    clock[0] += 0.6
    ahead.add("second")

    assert ahead.patience == pytest.approx(MAX_WAIT - 0.6)
    ahead.next()
    assert ahead.patience == pytest.approx(MAX_WAIT)


def test_after_giving_up_nothing_is_fetched_ahead() -> None:
    ahead = paced(0.001)
    ahead.add("first")
    ahead.add("second")

    assert ahead.give_up() == ["first", "second"]
    assert not ahead
    assert ahead.limit(5) == 0
