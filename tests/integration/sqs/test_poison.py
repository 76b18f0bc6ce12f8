"""Over a hundred kinds of damaged message, each alone and each among nine good ones."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from skincare.local.deadline import wait_until
from tests.faults.messages import b64, celery_message, envelope
from tests.faults.poison import Shape, oddities, poison
from tests.faults.proxy import FaultProxy
from tests.integration.sqs.calls import deleted_handles, visibility_changes
from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import Station, Worker

pytestmark = pytest.mark.timeout(240)  # five receives of each shape, on a machine that may be busy

GOOD_AROUND = 9
SECRET = "marker-of-a-body"
POISON = [
    *poison("record"),
    Shape("event that adapt fails on", '{"event_id": "1", "event_type": "bug in adapt"}'),
    Shape("event of an unknown task", '{"event_id": "1", "event_type": "unknown task"}'),
    Shape("object with a secret", json.dumps({"card": SECRET})),
    Shape("arguments with a secret", celery_message("nobody.knows_me", [SECRET])),
]
NAMES = [shape.name for shape in POISON]
ODDITIES = oddities("record")


@dataclass
class Outcome:
    """What became of the messages, by the name of their shape."""

    worker: Worker
    message_ids: dict[str, str]
    dead: dict[str, str]
    deleted: int
    visibility_timeouts: list[int]
    """Those that the worker asked for, in seconds."""


@pytest.fixture(scope="module")
def outcomes(
    fault_proxy: FaultProxy,
    make_queue: Callable[..., Queue],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Outcome, Outcome]]:
    """All shapes alone, for a worker with one process, which takes one message at a time; and each
    among nine good ones, for a worker that takes ten. Both at once, for it takes a while."""
    single, many = make_queue(), make_queue()
    with (
        worker_on(single, fault_proxy, tmp_path_factory, concurrency=1) as alone,
        worker_on(many, fault_proxy, tmp_path_factory, concurrency=10) as in_batch,
    ):
        alone_ids = dict(zip(NAMES, single.send_all([s.body for s in POISON]), strict=True))
        in_batch_ids = {}
        for shape in POISON:
            good = [celery_message("record", [line]) for line in good_lines(shape)]
            in_batch_ids[shape.name] = many.send_all([*good[:4], shape.body, *good[4:]])[4]
        in_batch.wait_for_all([line for s in POISON for line in good_lines(s)], seconds=60)
        alone_dead = single.wait_dead(len(POISON), seconds=90)
        in_batch_dead = many.wait_dead(len(POISON), seconds=90)
        for queue, worker in ((single, alone), (many, in_batch)):
            queue.call("record", "afterwards")
            worker.wait_for("afterwards")
            queue.wait_empty()
        yield (
            outcome(fault_proxy, single, alone, alone_ids, alone_dead),
            outcome(fault_proxy, many, in_batch, in_batch_ids, in_batch_dead),
        )


@pytest.fixture(scope="module")
def alone(outcomes: tuple[Outcome, Outcome]) -> Outcome:
    return outcomes[0]


@pytest.fixture(scope="module")
def in_batch(outcomes: tuple[Outcome, Outcome]) -> Outcome:
    return outcomes[1]


def outcome(
    proxy: FaultProxy,
    queue: Queue,
    worker: Worker,
    message_ids: dict[str, str],
    dead: dict[str, str],
) -> Outcome:
    return Outcome(
        worker,
        message_ids,
        dead,
        deleted=len(deleted_handles(proxy, queue)),
        visibility_timeouts=visibility_changes(proxy, queue),
    )


def worker_on(
    queue: Queue, proxy: FaultProxy, folders: pytest.TempPathFactory, concurrency: int
) -> Worker:
    return Worker(
        folders.mktemp("poison"),
        endpoint_url=proxy.url,
        queues={queue.name: queue.url},
        concurrency=concurrency,
    ).wait_ready()


def good_lines(shape: Shape) -> list[str]:
    return [f"{shape.name}: good {number}" for number in range(GOOD_AROUND)]


@pytest.mark.parametrize("shape", POISON, ids=lambda shape: shape.name)
def test_poison_alone_ends_in_the_dead_letter_queue(alone: Outcome, shape: Shape) -> None:
    assert alone.dead[alone.message_ids[shape.name]] == shape.body


@pytest.mark.parametrize("shape", POISON, ids=lambda shape: shape.name)
def test_poison_among_nine_good_ones_takes_none_of_them_along(
    in_batch: Outcome, shape: Shape
) -> None:
    assert in_batch.dead[in_batch.message_ids[shape.name]] == shape.body
    done = in_batch.worker.lines()
    assert [done.count(line) for line in good_lines(shape)] == [1] * GOOD_AROUND


@pytest.mark.parametrize("form", ["alone", "in_batch"])
def test_the_worker_lives_on_and_nothing_but_poison_is_dead(
    form: str, request: pytest.FixtureRequest
) -> None:
    result: Outcome = request.getfixturevalue(form)

    assert result.worker.running
    assert {entry["worker_pid"] for entry in result.worker.diary()} == {result.worker.pid}
    assert set(result.dead) == set(result.message_ids.values())


def test_poison_is_never_deleted(alone: Outcome, in_batch: Outcome) -> None:
    afterwards = 1
    assert alone.deleted == afterwards
    assert in_batch.deleted == GOOD_AROUND * len(POISON) + afterwards


def test_each_quarantine_is_one_log_line_with_a_reason_and_without_the_body(
    alone: Outcome,
) -> None:
    lines = alone.worker.logged("message_quarantined")

    counts = {(line["sqs_message_id"], line["receive_count"]) for line in lines}
    assert len(counts) == len(lines), "one line for each receive"
    assert all(line["reason"] for line in lines)
    assert SECRET not in alone.worker.log_file.read_text()
    never_a_task = {line["sqs_message_id"] for line in lines}
    for name in ("not JSON", "null", "headers missing", "task unknown", "expired", "id a list"):
        assert alone.message_ids[name] in never_a_task


def test_poison_does_not_wait_long_between_its_receives(alone: Outcome) -> None:
    """Within a minute it has to be in the dead-letter queue."""
    assert len(alone.visibility_timeouts) >= 5 * len(POISON)
    assert all(0 <= seconds <= 10 for seconds in alone.visibility_timeouts)


def test_an_oddity_runs_or_ends_in_the_dead_letter_queue(
    steady: Station,
) -> None:
    worker, queue = steady
    ids = queue.send_all([shape.body for shape in ODDITIES])

    wait_until(
        lambda: len(queue.dead()) + len(ran(worker, ids)) >= len(ids),
        seconds=60,
        what="all oddities run or dead",
        every=0.2,
    )

    assert ran(worker, ids).isdisjoint(queue.dead())
    assert ran(worker, ids) | set(queue.dead()) == set(ids)
    queue.call("record", "afterwards")
    worker.wait_for("afterwards")
    queue.wait_empty()


def ran(worker: Worker, ids: list[str]) -> set[str]:
    return {entry["message_id"] for entry in worker.diary()} & set(ids)


def test_a_revoked_task_ends_in_the_dead_letter_queue(
    queue: Queue, start_worker: Callable[..., Worker]
) -> None:
    worker = start_worker(queue, revoked=["revoked-1"])
    revoked = queue.send(celery_message("record", ["x"], headers={"id": "revoked-1"}))

    assert list(queue.wait_dead(1, seconds=30)) == [revoked]
    assert worker.lines() == []


@pytest.mark.parametrize("form", ["bare", "base64", "notification", "notification in base64"])
def test_a_bare_event_becomes_its_task(steady: Station, form: str) -> None:
    event_id = f"event-{zlib.crc32(form.encode())}"
    body = json.dumps({"event_id": event_id, "event_type": "record", "amount_rupiah": 1})
    if form.startswith("notification"):
        body = json.dumps({"Type": "Notification", "TopicArn": "arn:aws:sns:…", "Message": body})
    worker, queue = steady

    queue.send(b64(body) if form.endswith("base64") else body)

    assert worker.wait_for(event_id)["task_id"] == event_id
    queue.wait_empty()


def test_messages_of_a_stock_producer_run(steady: Station) -> None:
    """Base64 outside and inside, as kombu writes by default, and without the one outside."""
    worker, queue = steady

    queue.send(celery_message("record", ["base64"]))
    queue.send(json.dumps(envelope("record", ["plain"])))

    worker.wait_for_all(["base64", "plain"], seconds=10)
    queue.wait_empty()


def test_the_worker_imports_neither_django_nor_this_project(steady: Station) -> None:
    worker, queue = steady

    queue.call("modules")

    assert worker.wait_for("")["line"] == ""
