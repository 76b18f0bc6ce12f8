"""Messages fetched ahead: short tasks need few polls, and behind a long one none waits."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable

from skincare.local.deadline import wait_until
from tests.faults.proxy import FaultProxy
from tests.integration.sqs.calls import deletes, polls, visibility_changes
from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import Worker

Start = Callable[..., Worker]
WARM_UP = [f"warm-up {number}" for number in range(60)]


def warm_worker(queue: Queue, start_worker: Start, **policy: float) -> Worker:
    """A worker that has seen nothing but short tasks."""
    worker = start_worker(queue, **policy)
    for line in WARM_UP:
        queue.call("record", line)
    worker.wait_for_all(WARM_UP, seconds=20)
    queue.wait_empty(seconds=5)
    return worker


def test_of_a_backlog_of_short_tasks_more_is_fetched_than_starts_at_once(
    proxy: FaultProxy, queue: Queue, start_worker: Start
) -> None:
    lines = [f"line {number}" for number in range(200)]
    for line in lines:
        queue.call("record", line)

    worker = start_worker(queue, concurrency=2)
    worker.wait_for_all(lines, seconds=30)
    queue.wait_empty(seconds=5)

    assert set(Counter(worker.lines()).values()) == {1}
    assert max(call.document["MaxNumberOfMessages"] for call in polls(proxy, queue)) > 2
    assert sum(call.entries for call in deletes(proxy, queue)) == 200
    assert visibility_changes(proxy, queue) == []


def test_behind_long_tasks_a_message_is_left_to_other_workers(
    proxy: FaultProxy, queue: Queue, start_worker: Start
) -> None:
    worker = warm_worker(queue, start_worker)
    for line in ("long 1", "long 2"):
        queue.call("sleep", line, 4)
    worker.wait_for("long 1", step="started")
    worker.wait_for("long 2", step="started")

    queue.call("record", "behind them")
    wait_until(lambda: visibility_changes(proxy, queue), seconds=4, what="its release")

    assert set(visibility_changes(proxy, queue)) == {0}
    assert len(queue.bodies()) == 1, "visible at once"
    assert "behind them" not in worker.lines()


def test_after_a_long_task_nothing_is_fetched_ahead(
    proxy: FaultProxy, queue: Queue, start_worker: Start
) -> None:
    worker = warm_worker(queue, start_worker)
    queue.call("sleep", "long", 1)
    worker.wait_for("long")
    queue.call("record", "for the poll that is under way")
    worker.wait_for("for the poll that is under way")
    proxy.forget()
    lines = [f"long {number}" for number in range(4)]
    for line in lines:
        queue.call("sleep", line, 1)

    worker.wait_for_all(lines, seconds=10)

    assert max(call.document["MaxNumberOfMessages"] for call in polls(proxy, queue)) <= 2
    assert [worker.receive_counts(line) for line in lines] == [[1]] * 4
    assert visibility_changes(proxy, queue) == []


def test_at_the_end_what_waits_is_released(
    proxy: FaultProxy, queue: Queue, start_worker: Start
) -> None:
    worker = warm_worker(queue, start_worker)
    for line in ("last 1", "last 2"):
        queue.call("sleep", line, 2)
    worker.wait_for("last 1", step="started")
    worker.wait_for("last 2", step="started")
    queue.call("record", "not for this worker")
    wait_until(lambda: queue.depth().in_flight == 3, seconds=3, what="a message fetched ahead")

    worker.send_signal(signal.SIGTERM)

    assert worker.wait_exit(seconds=10) == 0
    assert sorted(worker.lines()) == sorted([*WARM_UP, "last 1", "last 2"])
    # Once, or once more if the poll that was in flight got it again.
    assert set(visibility_changes(proxy, queue)) == {0}
    assert len(queue.bodies()) == 1, "visible at once"
