"""Reading the messages of an answer, whatever they are."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skincare.sqs.decoder import ReceivedMessage, read_received
from tests.unit.sqs.documents import json_values


def test_a_message_is_read() -> None:
    message = {
        "MessageId": "m",
        "ReceiptHandle": "h",
        "Body": "{}",
        "Attributes": {"ApproximateReceiveCount": "3"},
    }

    received = read_received(message, queue="q", received_at=9.0, visibility_timeout=120)

    assert received == ReceivedMessage(
        "q", "m", "h", 3, "{}", received_at=9.0, invisible_until=129.0
    )


@given(
    st.one_of(
        json_values,
        st.fixed_dictionaries(
            {"ReceiptHandle": st.text(min_size=1)},
            optional={"MessageId": json_values, "Body": json_values, "Attributes": json_values},
        ),
    )
)
def test_whatever_has_a_receipt_handle_can_be_settled(message: object) -> None:
    received = read_received(message, queue="q", received_at=9.0, visibility_timeout=120)

    if isinstance(message, dict) and isinstance(message.get("ReceiptHandle"), str):
        assert (received is not None) == bool(message["ReceiptHandle"])
    else:
        assert received is None
    if received is not None:
        assert received.receive_count >= 1
        assert isinstance(received.body, str)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('"3"', 3),
        ("3", 3),
        ("0", 1),
        ("-1", 1),
        ('"-7"', 1),
        ("2.9", 2),
        ('"2.9"', 1),
        ("1e999", 1),
        ("-1e999", 1),
        ("NaN", 1),
        ('"' + "9" * 5_000 + '"', 1),
        ("[3]", 1),
        ('{"3": 3}', 1),
        ("null", 1),
        ("true", 1),
        ('""', 1),
        ('"three"', 1),
    ],
)
def test_whatever_is_said_of_the_receives_a_message_has_had_one_at_least(
    written: str, read: int
) -> None:
    for attributes in (f'{{"ApproximateReceiveCount": {written}}}', written, "{}", "[1]"):
        message = {"ReceiptHandle": "h", "Attributes": json.loads(attributes)}

        received = read_received(message, queue="q", received_at=9.0, visibility_timeout=120)

        assert received is not None
        assert received.receive_count == (read if "Receive" in attributes else 1)
