"""Deletes: few calls, never in the way of the next task, tried again while it makes sense."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import uuid4

import pytest

from skincare.local.deadline import busyness, wait_until
from tests.faults.faults import (
    Denied,
    FailedEntries,
    Fault,
    Garbage,
    Hang,
    LostAnswer,
    Reset,
    Status,
)
from tests.faults.messages import celery_message
from tests.faults.proxy import FaultProxy
from tests.integration.sqs.calls import deletes, polls
from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import Station, Worker

Start = Callable[..., Worker]
DELETE = "DeleteMessageBatch"


def send_lines(queue: Queue, count: int) -> list[str]:
    batch = uuid4().hex[:8]
    lines = [f"{batch} {number}" for number in range(count)]
    queue.send_all([celery_message("record", [line]) for line in lines])
    return lines


def test_deletes_are_sent_ten_at_a_time(
    proxy: FaultProxy, queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue, concurrency=10)

    worker.wait_for_all(lines := send_lines(queue, 200), seconds=20)
    queue.wait_empty()

    assert sorted(worker.lines()) == sorted(lines)
    calls = proxy.calls(DELETE, queue=queue.url)
    assert sum(call.entries for call in calls) == 200
    assert len(calls) <= 60
    assert len(calls) + len(polls(proxy, queue)) <= 0.5 * 200
    assert proxy.calls("DeleteMessage") == []


def test_one_delete_waits_no_longer_than_its_linger(proxy: FaultProxy, steady: Station) -> None:
    worker, queue = steady

    queue.call("record", "alone")
    done = worker.wait_for("alone")["at"]
    wait_until(lambda: deletes(proxy, queue), seconds=5, what="the delete")

    assert deletes(proxy, queue)[0].started - done < 0.3 * busyness()


def test_entries_that_fail_are_deleted_later(proxy: FaultProxy, steady: Station) -> None:
    worker, queue = steady
    trouble = proxy.inject(
        FailedEntries(which=lambda index, entry: index % 2 == 0), action=DELETE, times=3
    )

    worker.wait_for_all(lines := send_lines(queue, 10), seconds=10)
    queue.wait_empty()

    assert trouble.hits == 3
    assert [worker.receive_counts(line) for line in lines] == [[1]] * 10


@pytest.mark.parametrize(
    "fault", [Status(500), Status(503), Status(429), Garbage(), Reset(), LostAnswer()], ids=repr
)
def test_a_call_that_fails_is_tried_again(proxy: FaultProxy, steady: Station, fault: Fault) -> None:
    worker, queue = steady
    trouble = proxy.inject(fault, action=DELETE, times=1 if fault == LostAnswer() else 3)

    worker.wait_for_all(lines := send_lines(queue, 4), seconds=10)
    queue.wait_empty()

    assert trouble.hits == trouble.times
    assert [worker.receive_counts(line) for line in lines] == [[1]] * 4


def test_a_delete_that_hangs_is_in_nobodys_way(proxy: FaultProxy, steady: Station) -> None:
    worker, queue = steady
    trouble = proxy.inject(Hang(), action=DELETE)

    started = time.monotonic()
    worker.wait_for_all(lines := send_lines(queue, 20), seconds=10)

    assert time.monotonic() - started < 5 * busyness()
    trouble.clear()
    queue.wait_empty(seconds=15)
    assert [worker.receive_counts(line) for line in lines] == [[1]] * 20


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Denied(), FailedEntries("AccessDenied", sender_fault=True)])
def test_denied_deletes_are_loud_and_the_worker_works_on(
    proxy: FaultProxy, steady: Station, fault: Fault
) -> None:
    worker, queue = steady
    before = len(worker.logged("settlement_failed"))
    trouble = proxy.inject(fault, action=DELETE)

    worker.wait_for_all(send_lines(queue, 4), seconds=10)
    wait_until(
        lambda: len(worker.logged("settlement_failed")) > before, seconds=5, what="the error line"
    )

    assert {line["level"] for line in worker.logged("settlement_failed")[before:]} == {"ERROR"}
    assert worker.logged("observed", report="acknowledgement_denied", about=DELETE)
    wait_until(lambda: worker.health().status == 1, seconds=5, what="the worker is unhealthy")
    assert "denies deletes" in worker.health().reason
    worker.wait_for_all(send_lines(queue, 1), seconds=5)
    trouble.clear()
    queue.wait_empty(seconds=15)
    wait_until(lambda: worker.health().status == 0, seconds=5, what="the worker is healthy again")
