"""What happens when a message's visibility runs out: after 12 seconds, for all cases at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from skincare.local.deadline import wait_until
from tests.faults.faults import FailedEntries, LostAnswer, Slow
from tests.faults.proxy import FaultProxy, Injection
from tests.integration.sqs.calls import visibility_changes
from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import Worker

SHORT: dict[str, Any] = {"visibility_timeout": 12, "soft_time_limit": 0.8, "hard_time_limit": 1}


class Case(NamedTuple):
    worker: Worker
    queue: Queue
    message_id: str
    trouble: Injection


@pytest.fixture(scope="module")
def own_proxy(sqs_server: str) -> Iterator[FaultProxy]:
    """Another proxy: the usual one forgets all faults after each test."""
    with FaultProxy(sqs_server) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def cases(
    own_proxy: FaultProxy,
    make_queue: Callable[..., Queue],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Case]]:
    troubles: dict[str, tuple[str, Any, int | None]] = {
        "late": ("ReceiveMessage", Slow(seconds=11), 1),
        "lost": ("ReceiveMessage", LostAnswer(), 1),
        "undeletable": ("DeleteMessageBatch", FailedEntries(), None),
    }
    with ExitStack() as stack:
        started = {}
        for line, (action, fault, times) in troubles.items():
            queue = make_queue(**SHORT)
            trouble = own_proxy.inject(fault, action=action, queue=queue.url, times=times)
            message_id = queue.call("record", line)
            worker = Worker(
                tmp_path_factory.mktemp(line),
                endpoint_url=own_proxy.url,
                queues={queue.name: queue.url},
                poll_timeout_margin=14,
                **SHORT,
            )
            started[line] = Case(stack.enter_context(worker), queue, message_id, trouble)
        yield started


def test_a_message_is_released_when_little_of_its_visibility_is_left(
    own_proxy: FaultProxy, cases: dict[str, Case]
) -> None:
    """Its answer came late: the task could still run when SQS gives it to another worker."""
    worker, queue, _, _ = cases["late"]

    assert worker.wait_for("late", seconds=30)["receive_count"] == 2
    assert worker.lines() == ["late"]
    assert visibility_changes(own_proxy, queue) == [0]


def test_a_message_whose_answer_was_lost_comes_back(cases: dict[str, Case]) -> None:
    worker, queue, _, _ = cases["lost"]

    assert worker.wait_for("lost", seconds=30)["receive_count"] == 2
    queue.wait_empty()
    assert worker.lines() == ["lost"]


def test_a_delete_is_given_up_when_the_visibility_is_over(cases: dict[str, Case]) -> None:
    worker, queue, message_id, trouble = cases["undeletable"]

    wait_until(lambda: worker.logged("delete_given_up"), seconds=40, what="giving up")
    trouble.clear()
    wait_until(lambda: len(worker.lines()) == 2, seconds=20, what="the second delivery")
    queue.wait_empty(seconds=20)

    given_up = {line["sqs_message_id"] for line in worker.logged("delete_given_up")}
    assert given_up == {message_id}
    assert worker.receive_counts("undeletable") == [1, 2]
