"""Jobs reach the processes whole, whatever their size and whichever process ends meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import Worker

Start = Callable[..., Worker]


def test_jobs_longer_than_a_pipe_takes_at_once_go_beside_short_ones(
    queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue)
    lines = [str(n) * (100_000 if n % 3 == 0 else 10) for n in range(1, 10)]

    for line in lines:
        queue.call("record", line)
    worker.wait_for_all(lines, seconds=20)

    queue.wait_empty(seconds=15)
    assert sorted(worker.lines()) == sorted(lines)


@pytest.mark.parametrize(
    "option", ["--max-tasks-per-child=2", "--max-memory-per-child=1"], ids=["tasks", "memory"]
)
def test_processes_that_are_replaced_after_some_tasks_lose_and_repeat_none(
    queue: Queue, start_worker: Start, option: str
) -> None:
    worker = start_worker(queue, options=[option])
    lines = [f"line {n}" for n in range(12)]

    for line in lines:
        queue.call("record", line)
    worker.wait_for_all(lines, seconds=60)

    queue.wait_empty(seconds=15)
    assert sorted(worker.lines()) == sorted(lines)
    assert len({entry["pid"] for entry in worker.diary()}) >= 6
    assert worker.logged("task_process_lost") == []
