"""SIGTERM once or twice, SIGQUIT, to the process or its group: no message is left invisible."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from skincare.local.deadline import busyness, wait_until
from tests.faults.faults import Fault, Hang, Status
from tests.faults.proxy import FaultProxy
from tests.integration.sqs.calls import deletes, polls, visibility_changes
from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import Worker
from tests.processes import runs

Start = Callable[..., Worker]
Stop = Callable[[Worker], None]


def stop(worker: Worker) -> None:
    worker.send_signal(signal.SIGTERM)


def stop_group(worker: Worker) -> None:
    """As a shell does, and an init that forwards to the group: the children get it too."""
    worker.send_signal_to_group(signal.SIGTERM)


@pytest.mark.parametrize("stop_worker", [stop, stop_group])
def test_idle_what_the_last_poll_brings_is_released(
    proxy: FaultProxy, queue: Queue, start_worker: Start, stop_worker: Stop
) -> None:
    worker = start_worker(queue, long_poll=3, soft_time_limit=2, hard_time_limit=3)
    wait_until(lambda: has_open_poll(proxy, queue), seconds=5, what="a poll in flight")

    stop_worker(worker)
    wait_until(lambda: worker.stopping, seconds=2, what="the worker to notice")
    queue.call("record", "too late")

    assert worker.wait_exit(seconds=8) == 0
    assert worker.lines() == []
    assert visibility_changes(proxy, queue) == [0]
    assert len(queue.bodies()) == 1, "visible at once"
    assert deletes(proxy, queue) == []


def test_idle_no_new_poll_is_sent(proxy: FaultProxy, queue: Queue, start_worker: Start) -> None:
    worker = start_worker(queue, long_poll=3, soft_time_limit=2, hard_time_limit=3)
    # The next one is not due before it has noticed; one under way to the proxy would be a new one.
    wait_until(lambda: has_open_poll(proxy, queue), seconds=5, what="a poll in flight")

    stop(worker)
    wait_until(lambda: worker.stopping, seconds=2, what="the worker to notice")
    sent = len(polls(proxy, queue))

    assert worker.wait_exit(seconds=8) == 0
    assert len(polls(proxy, queue)) == sent


@pytest.mark.parametrize("stop_worker", [stop, stop_group])
def test_busy_running_tasks_end_and_are_deleted(
    proxy: FaultProxy, queue: Queue, start_worker: Start, stop_worker: Stop
) -> None:
    worker = start_worker(queue)
    queue.call("sleep", "first", 2)
    queue.call("sleep", "second", 2.5)
    worker.wait_for("first", step="started")
    worker.wait_for("second", step="started")
    queue.call("record", "not for this worker")

    stop_worker(worker)

    assert worker.wait_exit(seconds=10) == 0
    assert sorted(worker.lines()) == ["first", "second"]
    assert sum(call.entries for call in deletes(proxy, queue)) == 2
    assert queue.depth().in_flight == 0
    assert len(queue.bodies()) == 1


@pytest.mark.parametrize(
    "signals",
    [(signal.SIGTERM, signal.SIGTERM), (signal.SIGQUIT,)],
    ids=["SIGTERM twice", "SIGQUIT"],
)
@pytest.mark.parametrize("to_group", [False, True], ids=["process", "group"])
def test_in_a_hurry_running_tasks_are_released(
    proxy: FaultProxy,
    queue: Queue,
    start_worker: Start,
    signals: tuple[signal.Signals, ...],
    to_group: bool,
) -> None:
    worker = start_worker(queue)
    children = worker.children()
    queue.call("sleep", "long", 60)
    worker.wait_for("long", step="started")

    started = time.monotonic()
    for number in signals:
        worker.send_signal_to_group(number) if to_group else worker.send_signal(number)
        # Two that come at the same time are one.
        wait_until(lambda: worker.stopping, seconds=3, what="the worker to notice")
    worker.wait_exit(seconds=6)

    assert time.monotonic() - started < 6 * busyness()
    # Once, or once more if the poll that was in flight got it again.
    assert set(visibility_changes(proxy, queue)) == {0}
    assert len(queue.bodies()) == 1, "visible at once"
    assert deletes(proxy, queue) == []
    wait_until(lambda: not any(map(runs, children)), seconds=3, what="no orphans")


def test_a_killed_worker_takes_its_running_tasks_along(queue: Queue, start_worker: Start) -> None:
    """Nobody would hold them to their time limits any more, and they may hold locks."""
    worker = start_worker(queue)
    children = worker.children()
    assert len(children) == 2
    queue.call("sleep", "long", 60)
    worker.wait_for("long", step="started")

    worker.send_signal(signal.SIGKILL)

    wait_until(lambda: not any(map(runs, children)), seconds=3, what="no orphans")


def test_time_limits_still_fire_while_draining(
    proxy: FaultProxy, queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue, soft_time_limit=1, hard_time_limit=3)
    queue.call("stubborn", "stubborn")
    worker.wait_for("stubborn", step="started")

    stop(worker)

    worker.wait_for("stubborn", step="asked to end", seconds=4)
    assert worker.wait_exit(seconds=8) == 0
    assert deletes(proxy, queue) == []
    assert visibility_changes(proxy, queue) == [1]


def test_a_delete_that_fails_while_stopping_is_tried_again(
    proxy: FaultProxy, queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue)
    queue.call("sleep", "last", 1)
    worker.wait_for("last", step="started")
    trouble = proxy.inject(Status(503), action="DeleteMessageBatch", times=2)

    stop(worker)

    assert worker.wait_exit(seconds=10) == 0
    assert trouble.hits == 2
    assert queue.empty()


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Hang(), Status(503)], ids=repr)
def test_with_sqs_in_trouble_it_still_ends(
    proxy: FaultProxy, queue: Queue, start_worker: Start, fault: Fault
) -> None:
    worker = start_worker(queue, stop_timeout=16)
    queue.call("sleep", "last", 1)
    worker.wait_for("last", step="started")
    proxy.inject(fault)

    stop(worker)

    assert worker.wait_exit(seconds=16) == 0
    assert worker.lines() == ["last"]


def has_open_poll(proxy: FaultProxy, queue: Queue) -> bool:
    """A poll that began just now, so that it stays open for a while."""
    return any(
        call.finished is None and time.time() - call.started < 0.5 for call in polls(proxy, queue)
    )
