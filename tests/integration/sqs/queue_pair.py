"""A queue and its dead-letter queue, seen as an outside client sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skincare.local.deadline import wait_until
from skincare.sqs import SQSPolicy
from skincare.sqs.queues import Depth, create_queue_pair, depth
from tests.faults.messages import celery_message

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType
    from mypy_boto3_sqs.type_defs import MessageTypeDef

BATCH_ENTRIES = 10
"""SQS takes at most 10 entries in a batch call, and 1 MiB in all."""
BATCH_BYTES = 1024 * 1024


@dataclass
class Queue:
    name: str
    url: str
    dlq_url: str
    client: SQSClient
    _dead: dict[str, str] = field(default_factory=dict)

    @classmethod
    def create(cls, client: SQSClient, name: str, policy: SQSPolicy) -> Queue:
        url, dlq_url = create_queue_pair(client, name=name, policy=policy)
        return cls(name, url, dlq_url, client)

    def send(self, body: str) -> str:
        """Puts one message on the queue; returns its message id."""
        return self.client.send_message(QueueUrl=self.url, MessageBody=body)["MessageId"]

    def send_all(self, bodies: Sequence[str]) -> list[str]:
        """Puts messages on the queue in as few calls as SQS allows; returns their message ids."""
        ids: list[str] = []
        batch: list[str] = []
        for body in [*bodies, None]:
            if body is None or len(batch) == BATCH_ENTRIES or _size([*batch, body]) > BATCH_BYTES:
                ids += self._send_batch(batch)
                batch = []
            if body is not None:
                batch.append(body)
        return ids

    def _send_batch(self, bodies: list[str]) -> list[str]:
        if not bodies:
            return []
        answer = self.client.send_message_batch(
            QueueUrl=self.url,
            Entries=[{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies)],
        )
        assert not answer.get("Failed")
        by_entry = {entry["Id"]: entry["MessageId"] for entry in answer["Successful"]}
        return [by_entry[str(n)] for n in range(len(bodies))]

    def call(self, task: str, *args: Any) -> str:
        """Puts a Celery message for `task` on the queue; returns its message id."""
        return self.send(celery_message(task, list(args)))

    def set_attributes(self, attributes: dict[QueueAttributeNameType, str]) -> None:
        self.client.set_queue_attributes(QueueUrl=self.url, Attributes=attributes)

    def depth(self) -> Depth:
        return depth(self.client, self.url)

    def empty(self) -> bool:
        """Nothing visible, in flight or delayed: all that was sent is deleted or dead."""
        now = self.depth()
        return now.visible + now.in_flight + now.delayed == 0

    def wait_empty(self, seconds: float = 10.0) -> None:
        wait_until(self.empty, seconds=seconds, what=f"an empty queue {self.name}", every=0.1)

    def bodies(self) -> list[str]:
        """What is visible on the queue. It is in flight afterwards."""
        bodies: list[str] = []
        while found := self._receive(self.url):
            bodies += [message["Body"] for message in found]
        return bodies

    def _receive(self, url: str) -> list[MessageTypeDef]:
        answer = self.client.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0
        )
        return answer.get("Messages", [])

    def dead(self) -> dict[str, str]:
        """Message ids and bodies of all that is or was in the DLQ. Takes them out of it."""
        while found := self._receive(self.dlq_url):
            for message in found:
                self._dead[message["MessageId"]] = message["Body"]
                self.client.delete_message(
                    QueueUrl=self.dlq_url, ReceiptHandle=message["ReceiptHandle"]
                )
        return dict(self._dead)

    def wait_dead(self, count: int, seconds: float = 60.0) -> dict[str, str]:
        wait_until(
            lambda: len(self.dead()) >= count,
            seconds=seconds,
            what=f"{count} messages in the DLQ of {self.name}",
            every=0.2,
        )
        return self.dead()


def _size(bodies: list[str]) -> int:
    return sum(len(body.encode()) for body in bodies)
