"""`channel.batch()`: what was sent, in how many calls, and what the caller is told of failures."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest
from celery import Celery

from skincare.local.deadline import busyness
from skincare.sqs import SQSPolicy, configure
from skincare.sqs.client import SendFailure
from tests.faults.faults import (
    CutAnswer,
    Denied,
    FailedEntries,
    Fault,
    Garbage,
    Hang,
    Reset,
    Status,
)
from tests.faults.proxy import FaultProxy
from tests.integration.sqs.queue_pair import BATCH_BYTES, Queue
from tests.integration.sqs.worker import POLICY

Send = Callable[[dict[str, str]], dict[str, SendFailure]]


@pytest.fixture
def sender(proxy: FaultProxy, queue: Queue) -> Iterator[Celery]:
    app = Celery("sender", set_as_current=False)
    policy = SQSPolicy(**POLICY)
    queues = {queue.name: queue.url}
    configure(app, policy=policy, queues=queues, region="us-east-1", endpoint_url=proxy.url)
    yield app
    app.close()


@pytest.fixture
def send(sender: Celery) -> Send:
    """Sends one call of `record` for each task id and argument, in one batch."""

    def send_batch(calls: dict[str, str]) -> dict[str, SendFailure]:
        with sender.producer_or_acquire() as producer, producer.channel.batch() as batch:
            for task_id, argument in calls.items():
                sender.send_task("record", [argument], task_id=task_id, producer=producer)
        return batch.failures

    return send_batch


def sent(queue: Queue) -> dict[str, int]:
    """How often each task id lies on the queue."""
    count: dict[str, int] = {}
    for body in queue.bodies():
        task_id = json.loads(body)["headers"]["id"]
        count[task_id] = count.get(task_id, 0) + 1
    return count


def test_ten_entries_a_call(proxy: FaultProxy, queue: Queue, send: Send) -> None:
    calls = {f"id-{n}": "x" for n in range(25)}

    assert send(calls) == {}

    assert sorted(call.entries for call in proxy.calls("SendMessageBatch")) == [5, 10, 10]
    assert len(proxy.calls()) == 3
    assert sent(queue) == dict.fromkeys(calls, 1)


def test_no_more_bytes_a_call_than_sqs_takes(proxy: FaultProxy, queue: Queue, send: Send) -> None:
    calls = {f"id-{n}": "x" * 300_000 for n in range(5)}

    assert send(calls) == {}

    sizes = [
        sum(len(entry["MessageBody"].encode()) for entry in call.document["Entries"])
        for call in proxy.calls("SendMessageBatch")
    ]
    assert len(sizes) == 2
    assert all(size <= BATCH_BYTES for size in sizes)
    assert sent(queue) == dict.fromkeys(calls, 1)


def test_a_message_that_is_too_long_fails_alone(queue: Queue, send: Send) -> None:
    failures = send({"short": "x", "long": "x" * BATCH_BYTES, "also short": "x"})

    assert list(failures) == ["long"]
    assert failures["long"].sender_fault
    assert sent(queue) == {"short": 1, "also short": 1}


def test_entries_that_fail_are_told_apart(proxy: FaultProxy, queue: Queue, send: Send) -> None:
    proxy.inject(
        FailedEntries("InternalError", which=lambda index, entry: index in (1, 3)),
        action="SendMessageBatch",
        times=1,
    )

    failures = send({f"id-{n}": "x" for n in range(5)})

    assert {task_id: failure.code for task_id, failure in failures.items()} == {
        "id-1": "InternalError",
        "id-3": "InternalError",
    }
    assert not failures["id-1"].sender_fault
    assert sent(queue) == {"id-0": 1, "id-2": 1, "id-4": 1}


@pytest.mark.parametrize(
    "fault",
    [Status(500), Status(503), Status(429), Denied(), Garbage(), CutAnswer(), Reset(), Hang()],
    ids=repr,
)
def test_a_call_that_fails_is_told_for_each_message_and_not_raised(
    proxy: FaultProxy, send: Send, fault: Fault
) -> None:
    calls = {f"id-{n}": "x" for n in range(15)}
    limit = POLICY["attempts"] * (POLICY["connect_timeout"] + POLICY["read_timeout"]) + 1.5

    with proxy.inject(fault, action="SendMessageBatch"):
        started = time.monotonic()
        failures = send(calls)
        took = time.monotonic() - started

    assert set(failures) == set(calls)
    assert not any(failure.sender_fault for failure in failures.values())
    assert took < limit * busyness(), "later calls are not tried after one that got no answer"
    assert send({"afterwards": "x"}) == {}, "the channel stays usable"


def test_refused_connections_are_told_and_the_channel_stays_usable(
    proxy: FaultProxy, queue: Queue, send: Send
) -> None:
    proxy.refuse()
    failures = send({"id-1": "x"})
    proxy.listen()

    assert list(failures) == ["id-1"]
    assert send({"id-2": "x"}) == {}
    assert sent(queue) == {"id-2": 1}


def test_one_failed_call_is_tried_again(proxy: FaultProxy, queue: Queue, send: Send) -> None:
    proxy.inject(Status(503), action="SendMessageBatch", times=1)

    assert send({"id-1": "x"}) == {}

    assert sent(queue) == {"id-1": 1}


def test_nothing_is_sent_when_the_block_raises(
    proxy: FaultProxy, sender: Celery, queue: Queue
) -> None:
    def send_and_raise() -> None:
        with producer.channel.batch():
            sender.send_task("record", ["x"], producer=producer)
            raise KeyError

    with sender.producer_or_acquire() as producer:
        with pytest.raises(KeyError):
            send_and_raise()
        sender.send_task("record", ["alone"], task_id="alone", producer=producer)

    assert proxy.calls("SendMessageBatch") == []
    assert sent(queue) == {"alone": 1}
