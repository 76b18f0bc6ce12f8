"""How a task ended travels to the main process as plain data, whatever the task raised."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skincare.sqs import RetryLater, Terminal, Unavailable
from skincare.sqs.outcome import TaskFailed
from skincare.sqs.task import describe, read_ending


class Closed(Terminal):
    def __init__(self, place: str, day: str) -> None:
        super().__init__(f"{place} is closed on {day}")


class Nameless(Terminal):
    reason = property(lambda self: 1 / 0, lambda self, value: None)  # type: ignore[assignment]


def test_our_outcomes_arrive_with_what_they_say() -> None:
    later = read_ending(describe(RetryLater("busy", after=7)))
    never = read_ending(describe(Closed("warehouse", "sunday")))
    away = read_ending(describe(Unavailable("PostgreSQL")))
    cut = read_ending(describe(Unavailable("PostgreSQL", resumes=2**40)))

    assert isinstance(later, RetryLater)
    assert (later.reason, later.after) == ("busy", 7.0)
    assert isinstance(never, Terminal)
    assert never.reason == "warehouse is closed on sunday"
    assert isinstance(away, Unavailable)
    assert (away.what, away.resumes) == ("PostgreSQL", None)
    assert isinstance(cut, Unavailable)
    assert cut.resumes == 2**40


def test_a_success_and_an_error_by_mistake() -> None:
    assert read_ending(None) is None
    failed = read_ending(describe(ZeroDivisionError("1/0 of a customer")))
    assert isinstance(failed, TaskFailed)
    assert str(failed) == "ZeroDivisionError"


def test_an_outcome_that_cannot_be_read_is_a_failure() -> None:
    assert describe(Nameless("x")) == ("TaskFailed", "Nameless", None)


@pytest.mark.parametrize("after", ["soon", None, True, object()])
def test_a_wait_that_is_no_number_is_the_backoff(after: object) -> None:
    assert describe(RetryLater("busy", after=after)) == ("RetryLater", "busy", None)  # type: ignore[arg-type]


@given(
    st.one_of(
        st.builds(Exception, st.text()),
        st.builds(Terminal, st.text() | st.integers()),  # type: ignore[arg-type]
        st.builds(RetryLater, st.text(), st.floats() | st.integers()),
        st.builds(Unavailable, st.text()),
    )
)
def test_any_ending_is_plain_data(error: Exception) -> None:
    ending = describe(error)

    assert json.loads(json.dumps(ending)) is not None
    assert read_ending(ending) is not None
