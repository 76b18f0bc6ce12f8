"""The task of an event, which the apps register under their own names."""

from collections.abc import Mapping
from typing import Any

from celery import Task as CeleryTask
from celery import shared_task
from django.db import close_old_connections

from skincare.events.consumer import process
from skincare.sqs.task import Task
from skincare.telemetry import task_context


class EventTask(Task):
    """Puts the ids of the event on all log lines and error reports from its start to its end, and
    keeps the database connection from one event to the next."""

    abstract = True

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        """Celery calls this in the task's process, before the task."""
        if not self.request.is_eager:
            # As at the start of a request: one that is too old or was cut off is replaced before
            # the event is touched.
            close_old_connections()
        task_context.bind(
            task=self.name,
            queue=(self.request.delivery_info or {}).get("routing_key"),
            receive_count=getattr(self.request, "receive_count", None),
            document=args[0] if args else None,
        )

    def after_return(self, *_: Any) -> None:
        """Celery calls this after its own line about the task's end."""
        task_context.clear()


def event_task(name: str) -> CeleryTask:
    """Register a task of this name that processes one event.

    See `skincare.events.consumer.process` for how that ends.
    """
    return shared_task(_process, base=EventTask, bind=True, name=name)


def _process(self: Task, document: Mapping[str, Any]) -> None:
    request = self.request
    process(
        document,
        receive_count=request.receive_count,
        worker=request.hostname,
        resumes=request.resumes,
    )
