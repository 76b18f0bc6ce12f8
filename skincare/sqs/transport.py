"""The kombu transport: how Celery sends to SQS and consumes from it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kombu.transport import SQS
from kombu.utils.json import dumps

from skincare.sqs.batch import Batch
from skincare.sqs.client import make_client
from skincare.sqs.wiring import OPTION, Wiring

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class Channel(SQS.Channel):
    """kombu's SQS channel with predefined queues."""

    _batch: Batch | None = None
    _client: "SQSClient | None" = None

    @property
    def wiring(self) -> Wiring:
        return self.transport_options[OPTION]

    def sqs(self, queue: str | None = None) -> "SQSClient":
        """Return the blocking client, with the policy's timeouts. One serves all queues."""
        if self._client is None:
            self._client = make_client(
                region=self.wiring.region,
                endpoint_url=self.wiring.endpoint_url,
                policy=self.wiring.policy,
            )
        return self._client

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        """Collect what is published on this channel and send it in batches at the end.

        Where the block raises, nothing is sent. What SQS does not take is in `failures`.
        """
        if self._batch is not None:
            raise RuntimeError("this channel is collecting a batch already")
        self._batch = batch = Batch()
        try:
            yield batch
        finally:
            self._batch = None
        batch.send(self.sqs())

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        url = self.wiring.queues[queue]
        body = dumps(message)
        if self._batch is not None:
            task_id = message["properties"].get("correlation_id")
            self._batch.add(task_id=task_id, queue_url=url, body=body)
        else:
            self.sqs().send_message(QueueUrl=url, MessageBody=body)


class Transport(SQS.Transport):
    """The transport that `configure` names in `broker_transport`."""

    Channel = Channel
