"""A task as this transport runs it: its base class, its message, and what its end means for that.

Celery's own request deletes messages of tasks that were revoked, expired, ignored or retried, and
raises some errors of a task (MemoryError, SystemExit) in the event loop, where they end the worker.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from billiard.einfo import ExceptionWithTraceback
from celery import Celery, signals
from celery.app.task import Task as CeleryTask
from celery.app.trace import LOG_RECEIVED
from celery.exceptions import TaskRevokedError, TimeLimitExceeded
from celery.worker.request import Request as CeleryRequest
from celery.worker.state import task_ready, task_reserved
from kombu.message import Message as KombuMessage

from skincare.sqs.consumer import Consumer, Incoming
from skincare.sqs.decoder import TaskCall
from skincare.sqs.outcome import OUTCOMES, RetryLater
from skincare.sqs.policy import notify

log = logging.getLogger(__name__)


class Task(CeleryTask):
    """A task whose message is kept until it succeeds.

    `self.request.receive_count` and `self.request.sqs_message_id` describe the message.
    """

    abstract = True
    Strategy = "skincare.sqs.task:strategy"
    Request = "skincare.sqs.task:Request"
    #: Celery logs these as information, without a traceback.
    throws = OUTCOMES

    def retry(
        self,
        args: Any = None,
        kwargs: Any = None,
        exc: BaseException | None = None,
        throw: bool = True,
        eta: datetime | None = None,
        countdown: float | None = None,
        max_retries: int | None = None,
        **options: Any,
    ) -> RetryLater:
        """Keep the message for another try, and raise RetryLater.

        Celery's own sends a copy and deletes the message: a crash between the two loses or doubles
        it, and the receive count starts again, so that it never reaches the dead-letter queue. The
        queue's maxReceiveCount stands in for `max_retries`; other arguments cannot change.
        """
        if self.request.called_directly:
            raise exc or RuntimeError("retry() outside of a worker")
        if eta is not None:
            countdown = max((eta - datetime.now(eta.tzinfo or UTC)).total_seconds(), 0.0)
        reason = "retry" if exc is None else f"retry: {type(exc).__name__}"
        later = RetryLater(reason, after=countdown)
        if throw:
            raise later from exc
        return later


class TaskMessage(KombuMessage):
    """The kombu message of a task call: every part of it was made here, none is taken over unread.

    Only a task that succeeded can have it deleted.
    """

    def __init__(self, incoming: Incoming, channel: Any) -> None:
        self.call: TaskCall = incoming.call
        self.tag = incoming.tag
        self.consumer: Consumer = channel.consumer
        queue = incoming.message.queue
        super().__init__(
            body="",
            channel=channel,
            delivery_tag=incoming.tag,
            content_type="application/json",
            content_encoding="utf-8",
            headers=_headers(incoming),
            delivery_info={"exchange": "", "routing_key": queue},
            properties={"correlation_id": incoming.call.task_id, "reply_to": None},
        )


def _headers(incoming: Incoming) -> dict[str, Any]:
    """Return the headers of Celery's protocol 2, and two of ours for `task.request`."""
    call, message = incoming.call, incoming.message
    return {
        **call.extra,
        "task": call.task,
        "id": call.task_id,
        "root_id": call.root_id or call.task_id,
        "parent_id": call.parent_id,
        "retries": message.receive_count - 1,
        "timelimit": [call.hard_time_limit, call.soft_time_limit],
        # Celery logs these, or the arguments themselves where they are missing.
        "argsrepr": "(…)",
        "kwargsrepr": "{…}",
        "ignore_result": True,
        "receive_count": message.receive_count,
        "sqs_message_id": message.message_id,
    }


def strategy(task: CeleryTask, app: Celery, consumer: Any) -> Callable[..., None]:
    """Return the function that starts this task for a message.

    In place of Celery's own, which decodes the body again, waits for an `eta` in memory while the
    visibility runs out, and builds on the request a class of its own.
    """

    task.acks_late = True  # an early acknowledgement would be one before the task succeeded

    def start(message: TaskMessage, *_: Any) -> None:
        call = message.call
        request = Request(
            message,
            app=app,
            task=task,
            hostname=consumer.hostname,
            connection_errors=consumer.connection_errors,
            body=(call.args, call.kwargs, {}),
            headers=message.headers,
            decoded=True,
        )
        log.debug(LOG_RECEIVED, {"name": call.task, "id": call.task_id})
        signals.task_received.send(sender=consumer, request=request)
        task_reserved(request)
        consumer.on_task_request(request)

    return start


class Request(CeleryRequest):
    """One run of a task."""

    message: TaskMessage

    def execute_using_pool(self, pool: Any, **kwargs: Any) -> Any:
        """Start the task, unless its message should rather go to another worker."""
        refusal = self.message.consumer.refusal(self.message.tag)
        if refusal is not None:
            task_ready(self)
            self.acknowledged = True
            self.message.consumer.release(self.message.tag, delay=0.0, reason=refusal)
            raise TaskRevokedError(self.id)  # so Celery gives the process back
        return super().execute_using_pool(pool, **kwargs)

    def on_success(self, failed__retval__runtime: tuple[Any, ...], **_: Any) -> None:
        """The task's process says how it ended."""
        failed, retval, _runtime = failed__retval__runtime
        if failed:
            self.on_failure(retval, return_ok=True)
            return
        task_ready(self, successful=True)
        if not self.acknowledged:
            self.acknowledged = True
            self.message.consumer.done(self.message.tag)

    def on_failure(
        self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False
    ) -> None:
        """The task raised, or (`return_ok` false) its process died or was killed over it."""
        task_ready(self)
        error = exc_info.exception
        if isinstance(error, ExceptionWithTraceback):
            error = error.exc
        if not return_ok and not isinstance(error, TimeLimitExceeded):  # that one logs itself
            log.error(
                "task_process_lost",
                extra={"task": self.name, "task_id": self.id, "error": repr(error)},
            )
            notify(self.message.consumer.observer.task_lost, self.name)
        self._keep(error)

    def on_timeout(self, soft: bool, timeout: float) -> None:
        if not soft:
            notify(self.message.consumer.observer.task_lost, self.name)
        super().on_timeout(soft, timeout)

    def on_retry(self, exc_info: Any) -> None:
        self.on_failure(exc_info, return_ok=True)

    def acknowledge(self) -> None:
        """Keep the message: Celery calls this for tasks that it revoked or ignored."""
        if not self.acknowledged:
            self.acknowledged = True
            self.message.consumer.quarantine(self.message.tag, "revoked, expired or ignored")

    def reject(self, requeue: bool = False) -> None:
        """Keep the message; Celery calls this after the hard time limit."""
        self._keep(TimeLimitExceeded())

    def _keep(self, error: BaseException) -> None:
        if not self.acknowledged:
            self.acknowledged = True
            self.message.consumer.fail(self.message.tag, error)
