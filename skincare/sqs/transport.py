"""The kombu transport: how Celery sends to SQS and consumes from it.

It extends kombu's for the predefined queues. Polling, reading, acknowledging and sending are
replaced, since kombu's stop at the first error, die of a message, delete what was not processed,
and block the event loop; `tests/unit/sqs/test_pins.py` names the versions this was checked against.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kombu.transport import SQS, virtual
from kombu.transport.virtual.base import queue_declare_ok_t
from kombu.utils.json import dumps

from skincare.sqs.client import Batch, make_client
from skincare.sqs.consumer import Consumer
from skincare.sqs.policy import OPTION, Wiring
from skincare.sqs.task import TaskMessage

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class QoS:
    """kombu's word for the prefetch count. The messages themselves are with `Consumer`."""

    def __init__(self, channel: "Channel") -> None:
        self.channel = channel
        self.prefetch_count = 0

    def append(self, message: TaskMessage, delivery_tag: str) -> None:
        """Nothing to note."""

    def restore_unacked_once(self, stderr: Any = None) -> None:
        """Nothing to restore: what is not settled is still on the queue."""


class Channel(SQS.Channel):
    """A channel of the web process sends; the one of the worker also consumes."""

    Message = TaskMessage  # type: ignore[assignment]
    QoS = QoS  # type: ignore[assignment]
    do_restore = False

    _batch: Batch | None = None
    _client: "SQSClient | None" = None
    _consumer: Consumer | None = None

    @property
    def wiring(self) -> Wiring:
        return self.transport_options[OPTION]

    def queue_declare(self, queue: str | None = None, passive: bool = False, **kwargs: Any) -> Any:
        """Nothing to declare: `configure` names the queues. Past kombu, which asks SQS for the
        queue's depth, and so fails to send, or to start, while SQS is away."""
        return queue_declare_ok_t(queue, 0, 0)

    # -- Sending -----------------------------------------------------------------------------------

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

    # -- Consuming ---------------------------------------------------------------------------------

    @property
    def consumer(self) -> Consumer:
        """The polling and settling of this channel's consumers, made when first asked for."""
        if self._consumer is None:
            if self.hub is None:
                raise NotImplementedError("this transport consumes in Celery's event loop only")
            capacity = self.qos.prefetch_count or self.wiring.policy.concurrency
            self._consumer = Consumer(self.hub, self.wiring, capacity=capacity)
        return self._consumer

    def basic_qos(
        self, prefetch_size: int = 0, prefetch_count: int = 0, apply_global: bool = False
    ) -> None:
        """Set how many messages the consumers hold at once; 0 means the policy's concurrency."""
        self.qos.prefetch_count = prefetch_count
        if self._consumer is not None:
            self._consumer.resize(prefetch_count or self.wiring.policy.concurrency)

    def basic_consume(
        self,
        queue: str,
        no_ack: bool,
        callback: Callable[[TaskMessage], object],
        consumer_tag: str,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Start to poll the queue. Past kombu's own method, which starts kombu's polling."""
        if no_ack:
            raise ValueError("a message is deleted when its task succeeded, not when it arrives")
        virtual.Channel.basic_consume(self, queue, no_ack, callback, consumer_tag)
        self.consumer.start(queue, self.connection._callbacks[queue])

    def basic_cancel(self, consumer_tag: str) -> None:
        """Stop to consume. Celery cancels all consumers at once, when it has left its loop."""
        if self._consumer is not None:
            self._consumer.freeze()
        virtual.Channel.basic_cancel(self, consumer_tag)

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:
        """Keep the message: whoever acknowledges it here did not process it.

        A task that succeeded has its message deleted by its request, and nothing else does.
        """
        self.consumer.quarantine(delivery_tag, "acknowledged by another than its task")

    def basic_reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Keep the message."""
        self.consumer.quarantine(delivery_tag, "rejected by another than its task")

    def drain_events(self, timeout: Any = None, callback: Any = None, **_: Any) -> None:
        raise NotImplementedError("this transport consumes in Celery's event loop only")

    def close(self) -> None:
        """Stop consuming and settle what is left."""
        super().close()
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


class Transport(SQS.Transport):
    """The transport that `configure` names in `broker_transport`."""

    Channel = Channel
