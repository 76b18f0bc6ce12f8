"""What a task's outcome means for its message; it travels from process to process."""

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skincare.sqs import RetryLater, SQSPolicy, Terminal
from skincare.sqs.outcome import longest_backoff, release_delay, within_limits

POLICY = SQSPolicy()


def lowest(low: float, _high: float) -> float:
    return low


def highest(_low: float, high: float) -> float:
    return high


def test_outcomes_survive_the_way_between_processes() -> None:
    later = pickle.loads(pickle.dumps(RetryLater("busy", after=7.5)))  # noqa: S301
    never = pickle.loads(pickle.dumps(Terminal("no such order")))  # noqa: S301

    assert (later.reason, later.after, str(later)) == ("busy", 7.5, "busy")
    assert (never.reason, str(never)) == ("no such order", "no such order")


@pytest.mark.parametrize(
    ("receive_count", "seconds"), [(1, 10), (2, 30), (3, 60), (4, 120), (5, 0), (6, 0), (0, 10)]
)
def test_a_failed_message_waits_by_its_receive_count(receive_count: int, seconds: int) -> None:
    shortest = release_delay(
        RuntimeError(), receive_count=receive_count, policy=POLICY, uniform=lowest
    )
    longest = release_delay(
        RuntimeError(), receive_count=receive_count, policy=POLICY, uniform=highest
    )

    assert shortest == pytest.approx(seconds * 0.8)
    assert longest == pytest.approx(seconds * 1.2)


def test_a_jittered_step_stays_below_the_limit_of_sqs() -> None:
    policy = SQSPolicy(backoff=(43_200,) * 4)

    assert release_delay(None, receive_count=1, policy=policy, uniform=highest) == 43_200


def test_a_message_that_redrive_should_have_taken_waits_for_the_longest_step() -> None:
    assert longest_backoff(POLICY, lowest) == pytest.approx(96)
    assert longest_backoff(POLICY, highest) == pytest.approx(144)


def test_that_wait_stays_below_the_limit_of_sqs_too() -> None:
    assert longest_backoff(SQSPolicy(backoff=(43_200,) * 4), highest) == 43_200


def test_a_terminal_error_does_not_wait() -> None:
    assert release_delay(Terminal("never"), receive_count=1, policy=POLICY) == 0


@pytest.mark.parametrize(("after", "seconds"), [(7.5, 7.5), (0, 0), (-1, 0), (1e9, 43_200)])
def test_a_task_says_how_long_its_message_waits(after: float, seconds: float) -> None:
    error = RetryLater("busy", after=after)

    assert release_delay(error, receive_count=1, policy=POLICY) == seconds


def test_a_task_that_does_not_say_gets_the_backoff() -> None:
    error = RetryLater("busy")

    assert release_delay(error, receive_count=2, policy=POLICY, uniform=lowest) == 24


@given(seconds=st.floats())
def test_any_number_becomes_a_visibility_timeout_that_sqs_takes(seconds: float) -> None:
    assert 0 <= within_limits(seconds) <= 43_200
    assert not math.isnan(within_limits(seconds))
