"""Processes that accept no task, which no time limit of Celery's ever ends."""

from __future__ import annotations

import signal
from collections.abc import Callable

import psutil
import pytest

from skincare.local.deadline import wait_until
from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import POLICY, Worker
from tests.processes import runs

Start = Callable[..., Worker]


def test_frozen_processes_are_replaced_and_their_messages_come_again(
    queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue, watchdog_margin=2)
    frozen = worker.children()
    assert len(frozen) == 2
    for process in frozen:
        process.suspend()

    for line in (lines := ["one", "two", "three"]):
        queue.call("record", line)
    worker.wait_for_all(lines, seconds=45)

    queue.wait_empty(seconds=15)
    assert queue.dead() == {}
    assert len(worker.logged("task_hung")) == 2
    assert not any(psutil.pid_exists(process.pid) for process in frozen)
    assert all(max(worker.receive_counts(line)) <= 2 for line in lines)
    assert worker.health().status == 0


def test_one_frozen_process_does_not_stop_the_others(queue: Queue, start_worker: Start) -> None:
    worker = start_worker(queue, watchdog_margin=3)
    worker.children()[0].suspend()

    lines = [f"line {n}" for n in range(30)]
    for line in lines:
        queue.call("record", line)
    worker.wait_for_all(lines, seconds=45)

    queue.wait_empty(seconds=15)
    assert sum(len(worker.receive_counts(line)) for line in lines) == 30
    wait_until(lambda: len(worker.children()) == 2, seconds=15, what="two processes again")


def test_a_thread_that_keeps_the_interpreter_costs_its_process(
    queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue, watchdog_margin=2, concurrency=1)
    queue.call("leave_busy_thread", "polluter")
    worker.wait_for("polluter")
    [polluted] = worker.children()
    wait_until(lambda: polluted.cpu_times().user > 1.0, seconds=15, what="a busy thread")

    queue.call("record", "next")

    assert worker.wait_for("next", seconds=45)["receive_count"] == 2
    assert not psutil.pid_exists(polluted.pid) or worker.children()[0].pid != polluted.pid


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "with a task"])
def test_a_frozen_process_does_not_keep_a_worker_from_ending(
    busy: bool, queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue, watchdog_margin=2)
    if busy:
        queue.call("sleep", "long", 3)
        worker.wait_for("long", step="started")
    children = worker.children()
    for process in children:
        process.suspend()

    worker.send_signal(signal.SIGTERM)

    assert worker.wait_exit(seconds=POLICY["stop_timeout"]) == 0
    assert not any(map(runs, children))
    wait_until(lambda: queue.depth().in_flight == 0, seconds=5, what="nothing in flight")
