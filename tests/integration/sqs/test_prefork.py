"""Jobs reach the processes whole, whatever their size and whichever process ends meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skincare.local.deadline import wait_until
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


def test_a_process_that_cannot_be_replaced_now_is_replaced_later(
    queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue)
    queue.call("sleep", "running", 3)
    busy = worker.wait_for("running", step="started")["pid"]
    full = worker.folder / "full"
    full.touch()
    for process in worker.children():
        if process.pid != busy:
            process.kill()
    wait_until(lambda: worker.logged("process_not_started"), seconds=20, what="a fork that fails")

    queue.call("record", "by the other")
    worker.wait_for("running")
    worker.wait_for("by the other")
    full.unlink()

    wait_until(lambda: len(worker.children()) == 2, seconds=20, what="two processes again")
    for line in "abcd":
        queue.call("sleep", line, 0.5)
    worker.wait_for_all("abcd", seconds=20)
    queue.wait_empty(seconds=15)
    assert worker.receive_counts("running") == [1]
    assert len({entry["pid"] for entry in worker.diary(step="started")}) == 2
