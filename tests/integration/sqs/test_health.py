"""The health command in each state of a worker."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

from skincare.local.deadline import wait_until
from tests.faults.faults import Status
from tests.faults.proxy import FaultProxy
from tests.integration.sqs.calls import polls
from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import Worker, health

Start = Callable[..., Worker]


def test_an_idle_worker_is_healthy(proxy: FaultProxy, queue: Queue, start_worker: Start) -> None:
    worker = start_worker(queue)
    wait_until(lambda: len(polls(proxy, queue)) >= 2, seconds=5, what="an answered poll")

    assert worker.health().status == 0


def test_the_command_takes_less_than_a_tenth_of_a_second(queue: Queue, start_worker: Start) -> None:
    worker = start_worker(queue)

    assert min(worker.health().seconds for _ in range(5)) < 0.1


def test_no_file_is_unhealthy(tmp_path: Path) -> None:
    result = health(tmp_path / "nobody-writes-me")

    assert result.status == 1
    assert result.reason


def test_a_torn_file_is_unhealthy(tmp_path: Path) -> None:
    file = tmp_path / "health.json"
    file.write_text('{"tick": 1')

    assert health(file).status == 1


def test_a_worker_with_all_slots_busy_is_healthy(
    proxy: FaultProxy, queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue)
    for number in range(2):
        queue.call("sleep", f"line {number}", 3)
        worker.wait_for(f"line {number}", step="started")

    assert worker.health().status == 0
    assert read(worker)["queues"][queue.name]["in_flight"] == 2


def test_a_draining_worker_is_healthy(queue: Queue, start_worker: Start) -> None:
    worker = start_worker(queue)
    queue.call("sleep", "last", 3)
    worker.wait_for("last", step="started")

    worker.signal(signal.SIGTERM)
    wait_until(lambda: worker.stopping, seconds=2, what="the worker to notice")

    assert worker.health().status == 0
    assert worker.wait_exit(seconds=10) == 0


def test_the_file_counts_failed_polls(proxy: FaultProxy, queue: Queue, start_worker: Start) -> None:
    worker = start_worker(queue)
    proxy.inject(Status(503), action="ReceiveMessage")

    wait_until(
        lambda: read(worker)["queues"][queue.name]["consecutive_failures"] >= 2,
        seconds=15,
        what="two failures in the file",
    )

    assert worker.health().status == 0, "a short trouble is no reason to be replaced"


def read(worker: Worker) -> dict[str, dict[str, dict[str, int]]]:
    document: dict[str, dict[str, dict[str, int]]] = json.loads(worker.health_file.read_text())
    return document
