"""Settling messages when the event loop is over, with blocking calls and little patience."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from skincare.sqs.batch import MAX_ENTRIES
from skincare.sqs.client import make_client
from skincare.sqs.settlement import Settlement
from skincare.sqs.wiring import Wiring

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class Leftovers:
    """Messages of one queue that are still ours: processed ones, and ones to show again."""

    done: list[Settlement]
    kept: list[Settlement]

    def settle(self, url: str, wiring: Wiring) -> bool:
        """Delete the first, show the others when they want it; return whether SQS answered.

        The first failure ends it: the visibility timeout does the rest.
        """
        if not self.done and not self.kept:
            return True
        client = make_client(
            region=wiring.region,
            endpoint_url=wiring.endpoint_url,
            policy=wiring.policy,
            attempts=1,
        )
        try:
            for part in chunks(self.done):
                client.delete_message_batch(
                    QueueUrl=url,
                    Entries=[
                        {"Id": str(n), "ReceiptHandle": s.message.receipt_handle}
                        for n, s in enumerate(part)
                    ],
                )
            for part in chunks(self.kept):
                client.change_message_visibility_batch(
                    QueueUrl=url,
                    Entries=[
                        {
                            "Id": str(n),
                            "ReceiptHandle": s.message.receipt_handle,
                            "VisibilityTimeout": s.visibility_timeout,
                        }
                        for n, s in enumerate(part)
                    ],
                )
        except (BotoCoreError, ClientError, OSError, ValueError) as error:
            log.error("leftovers_not_settled", extra={"error": type(error).__name__})
            return False
        log.info("leftovers_settled", extra={"deleted": len(self.done), "released": len(self.kept)})
        return True


def chunks(items: list[T]) -> Iterator[list[T]]:
    """Split into parts of one batch call."""
    for start in range(0, len(items), MAX_ENTRIES):
        yield items[start : start + MAX_ENTRIES]
