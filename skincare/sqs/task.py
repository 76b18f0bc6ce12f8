"""The base class of the application's tasks."""

from datetime import UTC, datetime
from typing import Any

from celery.app.task import Task as CeleryTask

from skincare.sqs.outcome import RetryLater, Terminal


class Task(CeleryTask):
    """A task whose message is kept until it succeeds.

    `self.request.receive_count` and `self.request.sqs_message_id` tell of the message.
    """

    abstract = True
    Strategy = "skincare.sqs.request:strategy"
    Request = "skincare.sqs.request:Request"
    #: Celery logs these as information, without a traceback.
    throws = (RetryLater, Terminal)

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
