"""Reading the messages of an answer, whatever they are."""

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
