"""How long a call that failed waits for its next try."""

from hypothesis import given
from hypothesis import strategies as st

from skincare.sqs.backoff import POLL_BACKOFF, full_jitter


def test_the_ceiling_of_a_poll_backoff_doubles_up_to_20_seconds() -> None:
    ceilings = [full_jitter(n, POLL_BACKOFF, lambda _low, high: high) for n in range(9)]

    assert ceilings == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20.0, 20.0]


@given(failures=st.integers(0, 10_000))
def test_a_poll_backoff_stays_in_its_range(failures: int) -> None:
    assert 0.2 <= full_jitter(failures, POLL_BACKOFF) <= 20.0
