"""How a task ends decides when its message is seen again; nothing else deletes or copies it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skincare.local.deadline import wait_until
from tests.faults.faults import Denied, Fault, Hang, Status
from tests.faults.messages import celery_message
from tests.faults.proxy import FaultProxy
from tests.integration.sqs.calls import deletes, visibility_changes
from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import Station, Worker

Start = Callable[..., Worker]


def test_a_failed_task_comes_back_after_its_backoff(
    proxy: FaultProxy, queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue, backoff=(1, 2, 3, 4))

    queue.call("fail", "third time", 2)

    assert worker.wait_for("third time", seconds=15)["receive_count"] == 3
    queue.wait_empty()
    assert visibility_changes(proxy, queue) == [1, 2]
    starts = [entry["at"] for entry in worker.diary("started")]
    assert starts[1] - starts[0] >= 0.9
    assert starts[2] - starts[1] >= 1.9
    assert queue.dead() == {}


def test_a_task_that_always_fails_is_dead_after_exactly_five_receives(
    proxy: FaultProxy, steady: Station
) -> None:
    worker, queue = steady

    message_id = queue.call("fail", "never", 99)

    wait_until(lambda: message_id in queue.dead(), seconds=30, what="the message in the DLQ")
    started = worker.diary("started", "never")
    assert [entry["receive_count"] for entry in started] == [1, 2, 3, 4, 5]
    assert deletes(proxy, queue) == []
    assert proxy.calls("SendMessage") + proxy.calls("SendMessageBatch") == []


def test_the_backoff_is_jittered(proxy: FaultProxy, queue: Queue, start_worker: Start) -> None:
    """Messages that failed together must not come back together."""
    start_worker(queue, concurrency=4, backoff=(100, 100, 100, 100), backoff_jitter=0.2)

    queue.send_all([celery_message("fail", [f"line {n}", 99]) for n in range(20)])
    wait_until(lambda: len(visibility_changes(proxy, queue)) == 20, seconds=10, what="20 backoffs")

    asked = visibility_changes(proxy, queue)
    assert all(80 <= seconds <= 120 for seconds in asked)
    assert len(set(asked)) > 5


def test_a_terminal_error_is_dead_at_once(proxy: FaultProxy, steady: Station) -> None:
    _, queue = steady

    message_id = queue.call("raise_terminal", "hopeless")

    wait_until(lambda: message_id in queue.dead(), seconds=4, what="the message in the DLQ")
    assert set(visibility_changes(proxy, queue)) == {0}
    assert deletes(proxy, queue) == []


def test_a_task_can_say_when_it_wants_to_be_tried_again(proxy: FaultProxy, steady: Station) -> None:
    worker, queue = steady

    queue.call("retry_later", "later", 2)

    assert worker.wait_for("later", seconds=10)["receive_count"] == 2
    assert visibility_changes(proxy, queue) == [2]


def test_no_way_out_of_a_task_deletes_its_message_or_ends_the_worker(
    proxy: FaultProxy, steady: Station
) -> None:
    worker, queue = steady
    ways = [
        "retry",
        "ignore",
        "reject",
        "reject and requeue",
        "exit",
        "exit at once",
        "out of memory",
        "interrupt",
        "exception that cannot be pickled",
        "exception that only this process knows",
        "exit that only this process knows",
        "end that only this process knows",
        "terminal that cannot be rebuilt",
        "exception that cannot be described",
    ]

    ids = queue.send_all([celery_message("leave", [way]) for way in ways])

    wait_until(
        lambda: set(ids) <= set(queue.dead()), seconds=60, what="all of them in the DLQ", every=0.3
    )
    for way in ways:
        started = worker.diary("started", way)
        assert [entry["receive_count"] for entry in started] == [1, 2, 3, 4, 5], way
    assert deletes(proxy, queue) == []
    assert proxy.calls("SendMessage") + proxy.calls("SendMessageBatch") == []
    assert worker.running


def test_a_killed_child_costs_one_receive(steady: Station) -> None:
    worker, queue = steady

    queue.call("die", "phoenix")
    queue.call("record", "bystander")

    worker.wait_for("bystander")
    assert worker.wait_for("phoenix", seconds=25)["receive_count"] == 2
    queue.wait_empty()
    assert worker.lines().count("phoenix") == 1
    assert len(worker.logged("observed", report="task_lost", about="die")) == 1


def test_a_task_over_its_hard_limit_is_killed_and_its_message_kept(
    proxy: FaultProxy, queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue, soft_time_limit=1, hard_time_limit=2)

    queue.call("stubborn", "stubborn")
    worker.wait_for("stubborn", step="asked to end")
    wait_until(lambda: len(worker.lines("started")) == 2, seconds=10, what="the second try")

    assert deletes(proxy, queue) == []
    assert visibility_changes(proxy, queue)[0] == 1
    assert [entry["receive_count"] for entry in worker.diary("started")] == [1, 2]
    assert worker.logged("observed", report="task_lost", about="stubborn")


@pytest.mark.parametrize("fault", [Status(503), Denied(), Hang()], ids=repr)
def test_a_visibility_change_that_fails_is_in_nobodys_way(
    proxy: FaultProxy, queue: Queue, start_worker: Start, fault: Fault
) -> None:
    worker = start_worker(queue)
    for action in ("ChangeMessageVisibility", "ChangeMessageVisibilityBatch"):
        proxy.inject(fault, action=action)
    queue.call("fail", "failing", 99)
    worker.wait_for("failing", step="started")

    for number in range(5):
        queue.call("record", f"line {number}")
        worker.wait_for(f"line {number}", seconds=2)

    assert worker.running
    assert not any("skincare/sqs" in traceback for traceback in worker.tracebacks())


def test_without_a_redrive_policy_nothing_is_deleted_either(
    proxy: FaultProxy, make_queue: Callable[..., Queue], start_worker: Start
) -> None:
    queue = make_queue()
    queue.set_attributes({"RedrivePolicy": ""})
    worker = start_worker(queue, options=["--skip-preflight"])

    failing = queue.call("fail", "never", 99)
    unknown = queue.call("nobody.knows_me", "x")
    undecodable = queue.send("hello")
    wait_until(lambda: len(worker.lines("started")) >= 6, seconds=30, what="six receives")

    assert deletes(proxy, queue) == []
    assert {line["sqs_message_id"] for line in worker.logged("message_quarantined")} == {
        unknown,
        undecodable,
    }
    assert {line["about"] for line in worker.logged("observed", report="message_quarantined")} == {
        unknown,
        undecodable,
    }
    assert {entry["message_id"] for entry in worker.diary("started")} == {failing}
