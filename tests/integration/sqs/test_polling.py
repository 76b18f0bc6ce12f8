"""ReceiveMessage: whatever it is answered, the next poll comes, and none comes without a need."""

from __future__ import annotations

import json
import signal
import stat
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from skincare.local.deadline import busyness, wait_until
from tests.faults.faults import (
    CutAnswer,
    Denied,
    Fault,
    Garbage,
    Hang,
    Reset,
    Status,
)
from tests.faults.messages import celery_message
from tests.faults.proxy import Call, FaultProxy
from tests.integration.sqs.calls import polls
from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import POLICY, Station, Worker

Start = Callable[..., Worker]
POLL_TIMEOUT = POLICY["long_poll"] + POLICY["poll_timeout_margin"]

ANSWERS = [
    Status(400),
    Status(403),
    Status(404, "AWS.SimpleQueueService.NonExistentQueue"),
    Status(429),
    Status(500),
    Status(502),
    Status(503),
    Denied(),
    Denied(status=400),
    Reset(),
    CutAnswer(),
    Garbage(),
    Garbage(b""),
    Garbage(b"[]"),
    Garbage(b"null"),
    Garbage(b"\xff\xfe"),
    Garbage(b'{"Messages": 5}'),
    Garbage(b'{"Messages": {"Body": "x"}}'),
    Garbage(b'{"Messages": [5, null, [], "x"]}'),
    Garbage(b'{"Messages": [{}]}'),
    Garbage(b'{"Messages": [{"MessageId": "1", "Body": "x"}]}'),
    Garbage(b'{"Messages": [{"MessageId": 1, "ReceiptHandle": 2, "Body": 3, "Attributes": 4}]}'),
    Garbage(b"[" * 20_000),
]


@pytest.mark.parametrize("fault", ANSWERS, ids=repr)
def test_no_answer_ends_the_polling(proxy: FaultProxy, steady: Station, fault: Fault) -> None:
    worker, queue = steady
    queue.call("record", f"before {fault}")
    worker.wait_for(f"before {fault}", seconds=25)  # whatever backoff an earlier test has left
    proxy.inject(fault, action="ReceiveMessage", queue=queue.url, times=1)
    queue.call("record", "nudge")  # ends the poll that is open
    wait_until(lambda: broken_polls(proxy, queue), seconds=8, what="the end of a broken poll")

    queue.call("record", line := f"after {fault}")

    worker.wait_for(line, seconds=5)
    assert worker.running
    assert not worker.tracebacks()


def test_a_poll_that_is_never_answered_is_given_up(proxy: FaultProxy, steady: Station) -> None:
    worker, queue = steady
    trouble = proxy.inject(Hang(), action="ReceiveMessage", queue=queue.url, times=1)
    wait_until(lambda: trouble.hits, seconds=5, what="the poll that hangs")
    hung = polls(proxy, queue)[-1]

    queue.call("record", line := "after a hang")

    worker.wait_for(line, seconds=POLL_TIMEOUT + 3)
    following = next(call for call in polls(proxy, queue) if call.started > hung.started)
    pause = following.started - hung.started
    assert POLL_TIMEOUT - 0.5 < pause < POLL_TIMEOUT + 2 * busyness()


def test_refused_connections_are_tried_again(proxy: FaultProxy, steady: Station) -> None:
    worker, queue = steady
    before = len(worker.failed_polls())
    proxy.refuse()
    wait_until(lambda: len(worker.failed_polls()) >= before + 3, seconds=10, what="3 failed polls")
    wait_until(lambda: not proxy.open_exchanges, seconds=3, what="the end of the last poll")
    proxy.listen()

    queue.call("record", line := "after the refusals")

    worker.wait_for(line, seconds=10)
    assert worker.running


def test_failed_polls_back_off_and_each_is_one_log_line(proxy: FaultProxy, steady: Station) -> None:
    worker, queue = steady
    queue.call("record", line := "before the backoff")
    worker.wait_for(line)
    before = len(worker.failed_polls())

    with proxy.inject(Status(503), action="ReceiveMessage", queue=queue.url):
        wait_until(
            lambda: len(worker.failed_polls()) >= before + 5, seconds=20, what="5 failed polls"
        )
    failures = worker.failed_polls()[before : before + 5]

    assert [failure["failures"] for failure in failures] == [1, 2, 3, 4, 5]
    assert {failure["queue"] for failure in failures} == {queue.name}
    assert {failure["status"] for failure in failures} == {503}
    assert {failure["code"] for failure in failures} == {"ServiceUnavailable"}
    # Full jitter: from nothing to 0.2 s, doubled with each failure.
    for number, failure in enumerate(failures):
        assert 0 <= failure["retry_in"] <= 0.2 * 2**number
    assert len({failure["retry_in"] for failure in failures}) == 5
    failed = [call for call in polls(proxy, queue) if call.status == 503]
    for call, following, failure in zip(failed, failed[1:], failures, strict=False):
        assert following.started - call.started >= failure["retry_in"] - 0.01


@pytest.mark.parametrize("trouble", ["DNS", "TLS"])
def test_a_worker_that_cannot_connect_at_all_keeps_trying(
    sqs_server: str, queue: Queue, start_worker: Start, trouble: str
) -> None:
    unknown_host, plain_server = "http://sqs.invalid", sqs_server.replace("http:", "https:")
    url = unknown_host if trouble == "DNS" else plain_server

    worker = start_worker(queue, endpoint_url=url, options=["--skip-preflight"])

    wait_until(lambda: len(worker.failed_polls()) >= 4, seconds=15, what="four failed polls")
    assert worker.running
    assert worker.failed_polls()[3]["failures"] == 4
    worker.send_signal(signal.SIGTERM)
    assert worker.wait_exit(seconds=10) == 0


def test_queues_poll_independently(
    proxy: FaultProxy, make_queue: Callable[..., Queue], start_worker: Start
) -> None:
    refused, hanging, whole = make_queue(), make_queue(), make_queue()
    proxy.inject(Status(503), action="ReceiveMessage", queue=refused.url)
    proxy.inject(Hang(), action="ReceiveMessage", queue=hanging.url)
    worker = start_worker(refused, hanging, whole)
    wait_until(lambda: len(worker.failed_polls()) >= 3, seconds=10, what="three failed polls")

    started = time.monotonic()
    for number in range(10):
        whole.call("record", f"line {number}")
        worker.wait_for(f"line {number}", seconds=3)

    assert time.monotonic() - started < 5 * busyness()
    assert {failure["queue"] for failure in worker.failed_polls()} <= {refused.name, hanging.name}


def test_a_backlog_in_one_queue_does_not_starve_the_other(
    make_queue: Callable[..., Queue], start_worker: Start
) -> None:
    """Tasks take longer than a message may wait for one of two processes."""
    busy, other = make_queue(), make_queue()
    slow = [f"slow {n}" for n in range(16)]
    busy.send_all([celery_message("sleep", [line, 1.8]) for line in slow])
    worker = start_worker(busy, other)
    worker.wait_for(slow[0], step="started")
    lines = ["a", "b", "c", "d"]
    other.send_all([celery_message("record", [line]) for line in lines])

    worker.wait_for_all(lines, seconds=30)
    assert len(set(slow) - set(worker.lines())) >= 4
    worker.wait_for_all(slow, seconds=60)

    for queue in (busy, other):
        queue.wait_empty(seconds=15)
        assert queue.dead() == {}
    assert all(max(worker.receive_counts(line)) <= 2 for line in lines + slow)


def test_the_visibility_timeout_is_sent_with_each_poll(proxy: FaultProxy, steady: Station) -> None:
    _, queue = steady
    wait_until(lambda: len(polls(proxy, queue)) >= 2, seconds=5, what="two polls")

    for call in polls(proxy, queue):
        assert call.document["VisibilityTimeout"] == POLICY["visibility_timeout"]
        assert call.document["WaitTimeSeconds"] == POLICY["long_poll"]
        assert 1 <= call.document["MaxNumberOfMessages"] <= 10


def test_a_free_slot_is_polled_for_at_once(
    proxy: FaultProxy, queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue, concurrency=1)
    queue.send_all([celery_message("record", [f"line {n}"]) for n in range(20)])

    worker.wait_for_all([f"line {n}" for n in range(20)], seconds=10)

    done = [entry["at"] for entry in worker.diary()]
    # One process, one message at a time: stock kombu needs a polling interval (1 s) for each.
    assert done[-1] - done[0] < 2 * busyness()


def test_slots_that_free_together_share_a_poll(
    proxy: FaultProxy, queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue, concurrency=4)
    proxy.forget()
    queue.send_all([celery_message("record", [f"line {n}"]) for n in range(80)])

    worker.wait_for_all([f"line {n}" for n in range(80)], seconds=15)

    assert len(polls(proxy, queue)) <= 60


def test_no_poll_while_all_slots_are_taken(
    proxy: FaultProxy, queue: Queue, start_worker: Start
) -> None:
    worker = start_worker(queue, concurrency=2)
    for name in ("one", "two", "waiting"):
        queue.call("sleep", name, 2.0)
    wait_until(lambda: len(worker.lines("started")) == 2, seconds=5, what="two running tasks")
    both_started, busy = worker.diary("started")[-1]["at"], cpu_seconds(worker)

    wait_until(worker.lines, seconds=5, what="the end of a task")

    assert cpu_seconds(worker) - busy < 0.2
    first_end = worker.diary("done")[0]["at"]
    meanwhile = [call for call in polls(proxy, queue) if both_started < call.started < first_end]
    assert meanwhile == []
    worker.wait_for("waiting", step="started", seconds=2)


def test_an_idle_worker_sleeps(proxy: FaultProxy, queue: Queue, start_worker: Start) -> None:
    worker = start_worker(queue, long_poll=3, soft_time_limit=2, hard_time_limit=3)
    # With the first one it may be busy yet to begin.
    wait_until(lambda: len(polls(proxy, queue)) >= 2, seconds=10, what="the second poll")
    process = psutil.Process(worker.pid)
    switches, seconds = process.num_ctx_switches().voluntary, cpu_seconds(worker)

    wait_until(lambda: len(polls(proxy, queue)) >= 3, seconds=10, what="the next poll")

    second, third, *_ = polls(proxy, queue)[1:]
    passed = third.started - second.started
    assert passed > 2, "polls are as long as the policy says"
    assert cpu_seconds(worker) - seconds < 0.02 * passed
    assert process.num_ctx_switches().voluntary - switches < 20 * passed


def test_expired_credentials_are_taken_anew(
    proxy: FaultProxy, queue: Queue, start_worker: Start, tmp_path: Path
) -> None:
    """As with a task role: boto3 knows where to get new ones, and asks when the old ones end."""
    key = tmp_path / "key"
    key.write_text("AKIAOLD")
    worker = start_worker(queue, environment=credential_process(tmp_path, key))
    wait_until(lambda: polls(proxy, queue), seconds=5, what="a poll")
    assert polls(proxy, queue)[-1].access_key == "AKIAOLD"

    key.write_text("AKIANEW")
    proxy.inject(Status(403, "ExpiredToken"), action="ReceiveMessage", queue=queue.url, times=1)

    queue.call("record", "with new credentials")
    worker.wait_for("with new credentials", seconds=10)
    wait_until(
        lambda: polls(proxy, queue)[-1].access_key == "AKIANEW", seconds=5, what="the new key"
    )


def broken_polls(proxy: FaultProxy, queue: Queue) -> list[Call]:
    """The polls that a fault was put on and that have ended."""
    return [call for call in polls(proxy, queue) if call.fault and call.finished]


def credential_process(folder: Path, key: Path) -> dict[str, str]:
    """An environment in which boto3's credentials come from a program and end within a minute."""
    expiry = datetime.now(UTC) + timedelta(minutes=1)
    answer = {
        "Version": 1,
        "SecretAccessKey": "secret",
        "SessionToken": "token",
        "Expiration": expiry.isoformat(),
    }
    program = folder / "credentials"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib\n"
        f"answer = json.loads({json.dumps(answer)!r})\n"
        f"answer['AccessKeyId'] = pathlib.Path({str(key)!r}).read_text()\n"
        "print(json.dumps(answer))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    config = folder / "config"
    config.write_text(f"[profile short]\ncredential_process = {program}\n")
    return {
        "AWS_CONFIG_FILE": str(config),
        "AWS_PROFILE": "short",
        "AWS_ACCESS_KEY_ID": "",
        "AWS_SECRET_ACCESS_KEY": "",
    }


def cpu_seconds(worker: Worker) -> float:
    times = psutil.Process(worker.pid).cpu_times()
    return float(times.user + times.system)
