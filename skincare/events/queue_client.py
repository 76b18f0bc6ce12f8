"""This process's client for looks at the order events' queue and its dead-letter queue."""

from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings

from skincare.sqs.client import make_client
from skincare.sqs.dead_letters import DeadLetterQueue

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


def sqs_client() -> "SQSClient":
    """Return the client; made once, because that is slow."""
    return _client(settings.AWS_REGION, settings.SQS_ENDPOINT_URL)


def open_dead_letter_queue() -> DeadLetterQueue:
    """Return the dead-letter queue of the order events' queue.

    Raises `skincare.sqs.dead_letters.Unreachable` and `NoDeadLetterQueue`.
    """
    return DeadLetterQueue(sqs_client(), settings.ORDER_EVENTS_QUEUE_URL)


@cache
def _client(region: str, endpoint_url: str | None) -> "SQSClient":
    return make_client(region=region, endpoint_url=endpoint_url, policy=settings.SQS_POLICY)
