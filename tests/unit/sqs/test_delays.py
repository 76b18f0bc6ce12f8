"""How long to wait after what."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skincare.sqs import RetryLater, SQSPolicy, Terminal
from skincare.sqs.backoff import POLL_BACKOFF, full_jitter
from skincare.sqs.outcome import release_delay, within_limits

POLICY = SQSPolicy()


def lowest(low: float, _high: float) -> float:
    return low


def highest(_low: float, high: float) -> float:
    return high


def test_the_ceiling_of_a_poll_backoff_doubles_up_to_20_seconds() -> None:
    ceilings = [full_jitter(n, POLL_BACKOFF, highest) for n in range(9)]

    assert ceilings == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20.0, 20.0]


@given(failures=st.integers(0, 10_000))
def test_a_poll_backoff_stays_in_its_range(failures: int) -> None:
    assert 0.2 <= full_jitter(failures, POLL_BACKOFF) <= 20.0


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
