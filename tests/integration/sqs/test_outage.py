"""What a task needs is away: its message waits in the worker, and costs no receive."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skincare.local.deadline import wait_until
from tests.faults.faults import Late
from tests.faults.messages import celery_message
from tests.faults.proxy import FaultProxy
from tests.integration.sqs.calls import polls, visibility_changes
from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import Worker

Start = Callable[..., Worker]
#: Visible again after 12 s if nobody extends it; a retry may start 10 s after an extension.
SHORT = {"soft_time_limit": 1, "hard_time_limit": 1.5, "visibility_timeout": 13}


def away(worker: Worker) -> Path:
    return worker.folder / "away"


def call_all(queue: Queue, lines: list[str]) -> None:
    queue.send_all([celery_message("need_database", [line]) for line in lines])


#: An hour is thirty of the visibility timeouts of 120 seconds; here they are of 13.
@pytest.mark.parametrize(
    "timeouts",
    [
        2,
        pytest.param(
            30, id="an hour", marks=[pytest.mark.slow, pytest.mark.waits, pytest.mark.timeout(1200)]
        ),
    ],
)
def test_an_outage_longer_than_the_visibility_timeout_costs_no_receive(
    timeouts: int, proxy: FaultProxy, make_queue: Callable[..., Queue], start_worker: Start
) -> None:
    queue = make_queue(**SHORT)
    worker = start_worker(queue, **SHORT)
    away(worker).touch()
    lines = [f"early {n}" for n in range(4)]
    call_all(queue, lines)
    worker.wait_for("early 0", step="started")

    def extended() -> int:
        return visibility_changes(proxy, queue).count(13)

    time.sleep(timeouts * SHORT["visibility_timeout"])
    wait_until(lambda: extended() >= timeouts * len(lines), seconds=60, what="an extension in each")
    assert worker.lines() == []
    away(worker).unlink()

    worker.wait_for_all(lines, seconds=30)
    queue.wait_empty()
    assert [worker.receive_counts(line) for line in lines] == [[1]] * 4
    assert {entry["receive_count"] for entry in worker.diary("started")} == {1}
    assert queue.dead() == {}


def test_the_queue_is_not_polled_until_a_task_succeeds(
    proxy: FaultProxy, queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue)
    away(worker).touch()
    call_all(queue, ["first"])
    wait_until(lambda: worker.logged("queue_waiting"), seconds=10, what="the outage is noticed")
    wait_until(
        lambda: all(poll.finished for poll in polls(proxy, queue)), seconds=5, what="the last poll"
    )
    before = len(polls(proxy, queue))
    call_all(queue, late := [f"late {n}" for n in range(12)])
    wait_until(lambda: len(worker.lines("started")) >= 4, seconds=30, what="three more tries")

    assert set(worker.lines("started")) == {"first"}
    assert len(polls(proxy, queue)) == before
    assert queue.depth().visible == 12
    away(worker).unlink()

    worker.wait_for_all(["first", *late], seconds=30)
    assert [worker.receive_counts(line) for line in ["first", *late]] == [[1]] * 13
    [resumed] = worker.logged("queue_resumed")
    assert resumed["waiting_for"] == "PostgreSQL"


def test_a_worker_that_waits_is_healthy_and_says_what_for(
    queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue)
    away(worker).touch()
    call_all(queue, ["one", "two", "three"])

    def state() -> dict[str, object]:
        return json.loads(worker.health_file.read_text())["queues"].get(queue.name, {})

    wait_until(lambda: state().get("waiting_for"), seconds=15, what="the health file says it")

    assert state()["waiting_for"] == "PostgreSQL"
    health = worker.health()
    assert health.status == 0
    assert f"queue {queue.name} is waiting for PostgreSQL since {state()['waiting_since']}" in (
        health.reason
    )
    away(worker).unlink()
    worker.wait_for_all(["one", "two", "three"], seconds=30)
    wait_until(lambda: worker.health().reason == "", seconds=10, what="nothing to say any more")


def test_a_shutdown_releases_what_waits(queue: Queue, start_worker: Start) -> None:
    worker = start_worker(queue)
    away(worker).touch()
    call_all(queue, lines := [f"line {n}" for n in range(5)])
    wait_until(lambda: worker.logged("queue_waiting"), seconds=10, what="the outage is noticed")

    worker.send_signal(signal.SIGTERM)

    assert worker.wait_exit(seconds=10) == 0
    wait_until(lambda: queue.depth().in_flight == 0, seconds=3, what="nothing in flight")
    assert queue.depth().visible == len(lines)
    assert queue.dead() == {}


def test_a_release_at_shutdown_does_not_overtake_an_extension_under_way(
    proxy: FaultProxy, make_queue: Callable[..., Queue], start_worker: Start
) -> None:
    queue = make_queue(**SHORT)
    worker = start_worker(queue, **SHORT)
    away(worker).touch()
    call_all(queue, ["one"])
    wait_until(lambda: worker.logged("queue_waiting"), seconds=10, what="the outage is noticed")
    late = proxy.inject(
        Late(seconds=1.5), action="ChangeMessageVisibilityBatch", queue=queue.url, times=1
    )
    wait_until(lambda: late.hits, seconds=30, what="an extension that is late")

    worker.send_signal(signal.SIGTERM)

    assert worker.wait_exit(seconds=10) == 0
    assert visibility_changes(proxy, queue)[-2:] == [13, 0]
    assert queue.depth().visible == 1
