"""The shop's own worker, `skincare.celery`, with a record of when each event was done."""

from typing import Any

from celery import Task
from celery.signals import task_success

from skincare.celery import app as app
from tests.bench import work


@task_success.connect
def record(sender: Task, **_: Any) -> None:
    work.mark_done(sender.request.id)  # the event id
