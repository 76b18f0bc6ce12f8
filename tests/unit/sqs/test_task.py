"""What the base class of tasks changes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Celery

from skincare.sqs import RetryLater, SQSPolicy, Terminal, Unavailable, configure
from skincare.sqs.task import Task


@pytest.fixture
def app() -> Celery:
    app = Celery("shop", set_as_current=False)
    configure(app, policy=SQSPolicy(), queues={"q": "http://sqs/1/q"}, region="eu-west-1")
    return app


@pytest.fixture
def task(app: Celery) -> Task:
    @app.task(bind=True, shared=False)
    def greet(self: Task) -> None: ...

    return greet


def run_retry(task: Task, **options: Any) -> RetryLater:
    task.push_request(called_directly=False)
    try:
        with pytest.raises(RetryLater) as raised:
            task.retry(**options)
    finally:
        task.pop_request()
    return raised.value


def test_tasks_of_the_application_are_ours(task: Task) -> None:
    assert isinstance(task, Task)
    assert task.acks_late
    assert task.throws == (RetryLater, Terminal, Unavailable)


def test_retry_keeps_the_message(task: Task) -> None:
    error = OSError("away")
    later = run_retry(task, exc=error, countdown=7)

    assert (later.reason, later.after, later.__cause__) == ("retry: OSError", 7, error)


def test_retry_without_a_time_takes_the_backoff(task: Task) -> None:
    assert run_retry(task).after is None


def test_retry_at_a_time(task: Task) -> None:
    later = run_retry(task, eta=datetime.now(UTC) + timedelta(seconds=60))

    assert later.after == pytest.approx(60, abs=1)


def test_retry_outside_of_a_worker_raises_the_error(task: Task) -> None:
    with pytest.raises(OSError, match="away"):
        task.retry(exc=OSError("away"))
