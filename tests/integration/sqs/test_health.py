"""The health command in each state of a worker."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skincare.local.deadline import wait_until
from tests.faults.faults import Status
from tests.faults.proxy import FaultProxy
from tests.integration.sqs.calls import polls
from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import Station, Worker, health

Start = Callable[..., Worker]


def read(worker: Worker) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(worker.health_file.read_text())
    return document


def read_queue(station: Station) -> dict[str, Any]:
    """What the file says of the queue; nothing until the worker consumes it."""
    queue: dict[str, Any] = read(station.worker)["queues"].get(station.queue.name, {})
    return queue


def test_an_idle_worker_is_healthy(proxy: FaultProxy, steady: Station) -> None:
    worker, queue = steady
    wait_until(lambda: len(polls(proxy, queue)) >= 2, seconds=25, what="an answered poll")

    assert worker.health().status == 0


def test_the_command_takes_less_than_a_tenth_of_a_second(steady: Station) -> None:
    """Of a processor: on a busy machine it waits for its turn like any other."""
    assert min(steady.worker.health().cpu_seconds for _ in range(3)) < 0.1


def stands_still(worker: Worker) -> bool:
    """Whether the kernel has stopped every thread; it does so some time after the signal."""
    threads = Path(f"/proc/{worker.pid}/task").glob("*/stat")
    return all(thread.read_text().rpartition(") ")[2].startswith("T") for thread in threads)


def test_no_file_is_unhealthy(tmp_path: Path) -> None:
    result = health(tmp_path / "nobody-writes-me")

    assert result.status == 1
    assert "no health file" in result.reason


@pytest.mark.parametrize("text", ["", '{"last_tick": 1', "[]", "{}", '{"last_tick": null}'])
def test_a_torn_file_is_unhealthy(tmp_path: Path, text: str) -> None:
    file = tmp_path / "health.json"
    file.write_text(text)

    result = health(file)

    assert result.status == 1
    assert "is not a health file" in result.reason


def test_a_loop_that_does_not_tick_is_unhealthy(steady: Station, tmp_path: Path) -> None:
    """The file as it is when the loop has hung for 31 seconds."""
    report = read(steady.worker)
    report["last_tick"] -= 31
    old = tmp_path / "health.json"
    old.write_text(json.dumps(report))

    result = health(old)

    assert result.status == 1
    assert "has not ticked" in result.reason


def test_a_queue_without_answers_is_unhealthy(steady: Station, tmp_path: Path) -> None:
    """The file as it is when a queue has had a free slot and no answer for 91 seconds."""
    worker, queue = steady
    reports: list[dict[str, Any]] = []

    def polls_now() -> bool:
        reports.append(read(worker))
        return bool(reports[-1]["queues"].get(queue.name, {}).get("unanswered_since"))

    wait_until(polls_now, seconds=10, what="a poll")
    reports[-1]["queues"][queue.name]["unanswered_since"] -= 91
    file = tmp_path / "health.json"
    file.write_text(json.dumps(reports[-1]))

    result = health(file)

    assert result.status == 1
    assert queue.name in result.reason
    assert "no answered poll" in result.reason


def test_a_worker_that_stands_still_writes_nothing(steady: Station) -> None:
    """What the age of the file is worth: it is the loop itself that writes it."""
    worker, _ = steady
    worker.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: stands_still(worker), seconds=10, what="all its threads to stand still")
        before = read(worker)["last_tick"]
        health(worker.health_file)
        assert read(worker)["last_tick"] == before
    finally:
        worker.send_signal(signal.SIGCONT)

    wait_until(lambda: read(worker)["last_tick"] > before, seconds=10, what="the next tick")


@pytest.mark.slow
def test_a_worker_with_all_slots_busy_is_healthy_and_so_is_a_draining_one(
    make_queue: Callable[..., Queue], start_worker: Start
) -> None:
    """The tasks are longer than the time between two writes of the file."""
    long = {"visibility_timeout": 25, "soft_time_limit": 12, "hard_time_limit": 14}
    queue = make_queue(**long)
    worker = start_worker(queue, **long)
    for name in ("one", "two"):
        queue.call("sleep", name, 8)
        worker.wait_for(name, step="started")
    station = Station(worker, queue)
    wait_until(
        lambda: read_queue(station).get("in_flight") == 2, seconds=6, what="both in the file"
    )

    assert read_queue(station)["unanswered_since"] is None
    assert worker.health().status == 0

    worker.send_signal(signal.SIGTERM)
    wait_until(lambda: worker.stopping, seconds=3, what="the worker to notice")

    assert worker.health().status == 0
    assert worker.wait_exit(seconds=15) == 0
    assert sorted(worker.lines()) == ["one", "two"]


def test_the_file_counts_failed_polls(proxy: FaultProxy, steady: Station) -> None:
    worker, queue = steady
    proxy.inject(Status(503), action="ReceiveMessage", queue=queue.url)

    wait_until(
        lambda: read_queue(steady).get("consecutive_failures", 0) >= 2,
        seconds=15,
        what="two failures in the file",
    )

    assert worker.health().status == 0, "a short trouble is no reason to be replaced"
