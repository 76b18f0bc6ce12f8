"""A task as this transport runs it: its base class, its message, and what its end means for that.

Celery's own request deletes messages of tasks that were revoked, expired, ignored or retried, and
raises some errors of a task (MemoryError, SystemExit) in the event loop, where they end the worker.
"""

import logging
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from weakref import ref

from billiard.einfo import ExceptionWithTraceback
from celery import Celery, current_app, signals
from celery.app.task import Task as CeleryTask
from celery.app.trace import LOG_RECEIVED, trace_task
from celery.exceptions import TaskRevokedError, TimeLimitExceeded
from celery.worker.request import Request as CeleryRequest
from celery.worker.state import task_ready, task_reserved
from kombu.message import Message as KombuMessage

from skincare.sqs.consumer import Consumer, Incoming
from skincare.sqs.decoder import TaskCall
from skincare.sqs.outcome import OUTCOMES, RetryLater, TaskFailed, Terminal, Unavailable
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
    #: `autoretry_for=(Exception,)` leaves them as they are.
    dont_autoretry_for = OUTCOMES

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
    """Return the headers of Celery's protocol 2, and three of ours for `task.request`."""
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
        "resumes": incoming.resumes,
    }


def strategy(task: CeleryTask, app: Celery, consumer: Any) -> Callable[..., None]:
    """Return the function that starts this task for a message.

    In place of Celery's own, which decodes the body again, waits for an `eta` in memory while the
    visibility runs out, and builds on the request a class of its own.
    """

    task.acks_late = True  # an early acknowledgement would be one before the task succeeded

    def start(message: TaskMessage) -> None:
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


#: How a task ended, as its process says it: None, or one of our outcomes' names and its arguments.
#: Plain data, because the main process must read it whatever classes the task's errors are of.
Ending = tuple[str, str, float | None] | None


def run_in_process(
    name: str, task_id: str, request: dict[str, Any], args: list[Any], kwargs: dict[str, Any]
) -> Ending:
    """Run a task in a process of the pool, and say how it ended."""
    request.update(args=args, kwargs=kwargs, is_eager=False)
    try:
        _, info, _, _ = trace_task(current_app.tasks[name], task_id, args, kwargs, request)
    except SystemExit as error:  # of the task or of a signal: the process ends
        raise SystemExit(error.code if isinstance(error.code, int) else 1) from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt from None
    except BaseException as error:
        return describe(error)
    return describe(info.retval) if info else None


def describe(error: object) -> Ending:
    """Return what the main process needs to know of a task's error."""
    try:
        match error:
            case RetryLater():
                after = error.after
                is_number = isinstance(after, int | float) and not isinstance(after, bool)
                return "RetryLater", str(error.reason)[:1000], float(after) if is_number else None  # type: ignore[arg-type]
            case Terminal():
                return "Terminal", str(error.reason)[:1000], None
            case Unavailable():
                resumes = error.resumes if type(error.resumes) is int else None
                return "Unavailable", str(error.what)[:1000], resumes
    except Exception:  # its own `reason` or `__str__` fails
        log.exception("task_error_unreadable")
    return "TaskFailed", type(error).__name__[:1000], None


def read_ending(ending: Ending) -> BaseException | None:
    """Return the error that `describe` was about, None for a success."""
    match ending:
        case None:
            return None
        case ("RetryLater", reason, after):
            return RetryLater(reason, after)
        case ("Terminal", reason, _):
            return Terminal(reason)
        case ("Unavailable", what, resumes):
            return Unavailable(what, None if resumes is None else int(resumes))
        case (_, name, _):
            return TaskFailed(name)


class Request(CeleryRequest):
    """One run of a task."""

    message: TaskMessage

    def execute_using_pool(self, pool: Any, **_: Any) -> Any:
        """Start the task, unless its message should rather go to another worker."""
        refusal = self.message.consumer.refusal(self.message.tag)
        if refusal is not None:
            task_ready(self)
            self.acknowledged = True
            self.message.consumer.release(self.message.tag, delay=0.0, reason=refusal)
            raise TaskRevokedError(self.id)  # so Celery gives the process back
        if self.revoked():
            raise TaskRevokedError(self.id)
        hard, soft = self.time_limits
        args, kwargs, _embed = self._payload
        result = pool.apply_async(
            run_in_process,
            args=(self.task.name, self.id, self._request_dict, args, kwargs),
            accept_callback=self.on_accepted,
            timeout_callback=self.on_timeout,
            callback=self.on_ending,
            error_callback=self.on_failure,
            soft_timeout=soft or self.task.soft_time_limit,
            timeout=hard or self.task.time_limit,
            correlation_id=self.id,
        )
        self._apply_result = ref(result)
        self.message.consumer.executing(self.message.tag, self)
        return result

    @property
    def _job(self) -> Any:
        """The pool's record of this run; None before and after it."""
        return self._apply_result() if self._apply_result is not None else None

    @property
    def accepted_at(self) -> float | None:
        job = self._job
        return job._time_accepted if job is not None and job._accepted else None

    @property
    def pid(self) -> int | None:
        job = self._job
        if job is None:
            return None
        process = job._write_to or job._scheduled_for
        return job._worker_pid or (process.pid if process is not None else None)

    def withdraw(self) -> None:
        """Keep the pool from giving this run to another process when its own is gone."""
        self.acknowledged = True
        task_ready(self)
        if self._job is not None:
            self._job.terminate(signal.SIGKILL)

    def on_ending(self, ending: Ending) -> None:
        """The task's process says how it ended."""
        error = read_ending(ending)
        task_ready(self)
        if error is not None:
            self._keep(error)
        elif not self.acknowledged:
            self.acknowledged = True
            self.message.consumer.done(self.message.tag)

    def on_failure(
        self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False
    ) -> None:
        """Its process died, or was killed over it."""
        task_ready(self)
        error = exc_info.exception
        if isinstance(error, ExceptionWithTraceback):
            error = error.exc
        if not self.acknowledged and not isinstance(error, TimeLimitExceeded):
            # That one has its own line. One that is acknowledged was killed by ourselves.
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
