"""Reading the answers of batch calls, and how long a message is still to be hidden."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skincare.sqs.acknowledger import Acknowledgement, batch_errors
from skincare.sqs.async_client import NO_ANSWER, SQSError
from skincare.sqs.decoder import ReceivedMessage
from tests.unit.sqs.documents import json_values


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
