"""How a worker runs a task and what its end means for the message.

Celery's own request deletes messages of tasks that were revoked, expired, ignored or retried, and
raises some errors of a task (MemoryError, SystemExit) in the event loop, where they end the worker.
"""

import logging
from collections.abc import Callable
from typing import Any

from billiard.einfo import ExceptionWithTraceback
from celery import Celery, signals
from celery.app.task import Task
from celery.app.trace import LOG_RECEIVED
from celery.exceptions import TaskRevokedError, TimeLimitExceeded
from celery.worker.request import Request as CeleryRequest
from celery.worker.state import task_ready, task_reserved

from skincare.sqs.message import Message

log = logging.getLogger(__name__)


def strategy(task: Task, app: Celery, consumer: Any) -> Callable[..., None]:
    """Return the function that starts this task for a message.

    In place of Celery's own, which decodes the body anew, waits for an `eta` in memory while the
    visibility runs out, and builds on the request a class of its own.
    """

    task.acks_late = True  # an early acknowledgement would be one before the task succeeded

    def start(message: Message, *_: Any) -> None:
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

    message: Message

    def execute_using_pool(self, pool: Any, **kwargs: Any) -> Any:
        """Start the task, unless its message should rather go to another worker."""
        refusal = self.message.intake.refusal(self.message.tag)
        if refusal is not None:
            task_ready(self)
            self.acknowledged = True
            self.message.intake.release(self.message.tag, delay=0.0, reason=refusal)
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
            self.message.intake.done(self.message.tag)

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
        self._keep(error)

    def on_retry(self, exc_info: Any) -> None:
        self.on_failure(exc_info, return_ok=True)

    def acknowledge(self) -> None:
        """Celery's word for several ends that are none: nothing was processed."""
        if not self.acknowledged:
            self.acknowledged = True
            self.message.intake.quarantine(self.message.tag, "revoked, expired or ignored")

    def reject(self, requeue: bool = False) -> None:
        """Keep the message; Celery calls this after the hard time limit."""
        self._keep(TimeLimitExceeded())

    def _keep(self, error: BaseException) -> None:
        if not self.acknowledged:
            self.acknowledged = True
            self.message.intake.fail(self.message.tag, error)
