"""An end that does not go through the transport's own shutdown: Celery restarts at SIGHUP."""

from __future__ import annotations

import signal
from collections.abc import Callable

from skincare.local.deadline import wait_until
from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import Worker

Start = Callable[..., Worker]


def test_what_ends_while_celery_joins_its_pool_is_still_deleted(
    queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue)
    queue.call("sleep", "last", 2)
    worker.wait_for("last", step="started")

    worker.send_signal(signal.SIGHUP)

    wait_until(lambda: worker.logged("leftovers_settled"), seconds=10, what="the last calls")
    assert worker.logged("leftovers_settled")[0]["deleted"] == 1
    assert queue.depth() == (0, 0, 0)
    assert worker.receive_counts("last") == [1]
