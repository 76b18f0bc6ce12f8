"""A message as one ReceiveMessage handed it out."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Delivery:
    """One receive of one message."""

    queue: str
    message_id: str
    receipt_handle: str
    #: How often SQS handed the message out, this time included.
    receive_count: int
    body: str
    #: `time.monotonic()` at the earliest moment at which SQS can have handed it out, and until
    #: which no other worker gets it, at the least.
    received_at: float
    invisible_until: float

    @property
    def seconds_left(self) -> float:
        """Seconds for which the message is still ours."""
        return self.invisible_until - time.monotonic()

    @property
    def log_fields(self) -> dict[str, Any]:
        """What a log line says of it. Never the body."""
        return {
            "queue": self.queue,
            "sqs_message_id": self.message_id,
            "receive_count": self.receive_count,
        }


def read_delivery(
    message: object, *, queue: str, received_at: float, visibility_timeout: float
) -> Delivery | None:
    """Read an element of `Messages` in an answer; None where it has no receipt handle to use."""
    if not isinstance(message, Mapping):
        return None
    receipt_handle = message.get("ReceiptHandle")
    if not isinstance(receipt_handle, str) or not receipt_handle:
        return None
    body = message.get("Body")
    return Delivery(
        queue=queue,
        message_id=str(message.get("MessageId", "")),
        receipt_handle=receipt_handle,
        receive_count=_receive_count(message.get("Attributes")),
        body=body if isinstance(body, str) else "",
        received_at=received_at,
        invisible_until=received_at + visibility_timeout,
    )


def _receive_count(attributes: object) -> int:
    try:
        return max(1, int(attributes["ApproximateReceiveCount"]))  # type: ignore[index]
    except (TypeError, ValueError, KeyError):
        return 1
