"""Given: a dead-letter queue, and what workers have done about its events."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from skincare.events.claim import Claim, claim
from skincare.events.routing import PAYMENT_TASK
from skincare.events.schema import Event, parse_event
from tests.conftest import QueuePair
from tests.faults.messages import celery_message
from tests.integration.payments.conftest import gateways

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

__all__ = ["gateways"]


class Letters:
    """The dead-letter queue of the settings, as a test fills and counts it."""

    def __init__(self, client: "SQSClient", pair: QueuePair) -> None:
        self.client = client
        self.pair = pair

    def put(self, bodies: Iterable[str]) -> None:
        """Put messages into it, as many calls as SQS's limits ask for."""
        batch: list[Any] = []
        for number, body in enumerate(bodies):
            if len(batch) == 10 or sum(len(one["MessageBody"]) for one in batch) > 500_000:
                self._send(batch)
            batch.append({"Id": str(number), "MessageBody": body})
        self._send(batch)

    def _send(self, batch: list[Any]) -> None:
        answer = self.client.send_message_batch(QueueUrl=self.pair.dlq_url, Entries=batch)
        assert not answer.get("Failed")
        batch.clear()

    def visible(self) -> int:
        """How many messages anybody could receive now."""
        return self._count("ApproximateNumberOfMessages")

    def hidden(self) -> int:
        """How many messages somebody holds."""
        return self._count("ApproximateNumberOfMessagesNotVisible")

    def _count(self, name: Any) -> int:
        answer = self.client.get_queue_attributes(QueueUrl=self.pair.dlq_url, AttributeNames=[name])
        return int(answer["Attributes"][name])


@pytest.fixture
def letters(
    queue_pair: QueuePair, sqs_client: "SQSClient", sqs_server: str, settings: Any
) -> Letters:
    """The dead-letter queue that all services and commands of this test look at."""
    settings.ORDER_EVENTS_QUEUE_URL = queue_pair.url
    settings.SQS_ENDPOINT_URL = sqs_server
    return Letters(sqs_client, queue_pair)


def as_celery(event: Event) -> str:
    return celery_message(PAYMENT_TASK, [event.document()])


def as_bare(event: Event) -> str:
    return json.dumps(event.document())


def as_sns(event: Event) -> str:
    return json.dumps({"Type": "Notification", "Message": json.dumps(event.document())})


def claimed(event: Event) -> Claim:
    """A worker holds the event."""
    held = claim(event, worker="worker-1", receive_count=1)
    assert isinstance(held, Claim)
    return held


def failed(event: Event, error: str = "ValueError: no such payment") -> Event:
    """A worker has failed with the event."""
    claimed(event).fail(error)
    return event


def done(event: Event) -> Event:
    """A worker has done all for the event."""
    held = claimed(event)
    held.commit_effects()
    held.finish()
    return event


def another(event: Event) -> Event:
    """An event with the same id and another payload."""
    return parse_event({**event.document(), "amount_rupiah": event.amount_rupiah + 1})
