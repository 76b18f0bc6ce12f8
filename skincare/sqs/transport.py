"""The kombu transport: how Celery sends to SQS and consumes from it.

It extends kombu's for the predefined queues. Polling, reading, acknowledging and sending are
replaced, since kombu's stop at the first error, die of a message, delete what was not processed,
and block the event loop; `tests/unit/sqs/test_pins.py` names the versions this was checked against.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from celery.app.control import Control
from click import ClickException
from kombu.transport import SQS, virtual
from kombu.transport.virtual.base import queue_declare_ok_t
from kombu.utils.json import dumps

from skincare.sqs.client import Batch, make_client
from skincare.sqs.consumer import Consumer
from skincare.sqs.decoder import InvalidMessage, decode
from skincare.sqs.policy import OPTION, Wiring
from skincare.sqs.task import TaskMessage
from skincare.sqs.validation import call_problem

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


#: Replies to remote control and task events come without acknowledgement: nothing else does.
NO_REMOTE_CONTROL = (
    "Remote control and events are off: SQS cannot broadcast to workers, nor back. "
    "`python -m skincare.sqs.health` says how the worker on a host is, its log says more each "
    "minute (queue_counts), and SIGTERM stops it."
)


class Refused(ClickException, NotImplementedError):
    """Asked for what this transport does not do; Celery's commands print the sentence."""


class CannotSend(ValueError):
    """A message that every worker would refuse; the text is the reason."""


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
        self._check(body)
        if self._batch is not None:
            task_id = message["properties"].get("correlation_id")
            self._batch.add(task_id=task_id, queue_url=url, body=body)
        else:
            self.sqs().send_message(QueueUrl=url, MessageBody=body)

    def _check(self, body: str) -> None:
        """Raise `CannotSend` for what every worker would refuse."""
        try:
            call = decode(body, None)
        except InvalidMessage as refused:
            raise CannotSend(refused.reason) from None
        problem = call_problem(call, policy=self.wiring.policy, now=datetime.now(UTC))
        if problem:
            raise CannotSend(problem)

    # -- What would lose messages ------------------------------------------------------------------

    def queue_purge(self, queue: str, **_: Any) -> int:
        """Refuse: `celery purge`, `worker --purge` and `Queue.purge` would delete what waits."""
        raise Refused(
            f"Queue {queue} is not purged: messages are deleted when their tasks have succeeded. "
            "What must never run can be dropped from the dead-letter queue."
        )

    _purge = queue_purge

    def queue_delete(self, queue: str, *_: Any, **__: Any) -> None:
        """Refuse: queues are made and deleted by the deployment."""
        raise Refused(f"Queue {queue} is not deleted: that is for the deployment.")

    _delete = queue_delete

    def basic_get(self, queue: str, no_ack: bool = False, **_: Any) -> None:
        """Refuse: only a worker's event loop receives."""
        raise Refused("Messages are received by a worker only: `celery worker`.")

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
            raise Refused(NO_REMOTE_CONTROL)
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


class NoRemoteControl(Control):
    """Celery's `app.control`, whose every request is refused with a sentence."""

    def broadcast(self, *_: Any, **__: Any) -> Any:
        raise Refused(NO_REMOTE_CONTROL)
