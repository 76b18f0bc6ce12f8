"""Reading the messages of an answer, whatever they are."""

from hypothesis import given
from hypothesis import strategies as st

from skincare.sqs.delivery import Delivery, read_delivery
from tests.unit.sqs.documents import json_values


def test_a_message_is_read() -> None:
    message = {
        "MessageId": "m",
        "ReceiptHandle": "h",
        "Body": "{}",
        "Attributes": {"ApproximateReceiveCount": "3"},
    }

    delivery = read_delivery(message, queue="q", received_at=9.0, visibility_timeout=120)

    assert delivery == Delivery("q", "m", "h", 3, "{}", received_at=9.0, invisible_until=129.0)


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
    delivery = read_delivery(message, queue="q", received_at=9.0, visibility_timeout=120)

    if isinstance(message, dict) and isinstance(message.get("ReceiptHandle"), str):
        assert (delivery is not None) == bool(message["ReceiptHandle"])
    else:
        assert delivery is None
    if delivery is not None:
        assert delivery.receive_count >= 1
        assert isinstance(delivery.body, str)
