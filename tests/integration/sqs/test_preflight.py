"""A worker refuses a queue that would lose messages or contradict its numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import Worker

Start = Callable[..., Worker]


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"RedrivePolicy": ""}, "has no RedrivePolicy"),
        ({"VisibilityTimeout": "30"}, "has VisibilityTimeout 30, the policy says 16"),
    ],
    ids=["no RedrivePolicy", "another VisibilityTimeout"],
)
def test_a_queue_that_contradicts_the_policy_is_refused(
    queue: Queue, start_worker: Start, attributes: dict[str, str], sentence: str
) -> None:
    queue.set_attributes(attributes)
    queue.call("record", "x")

    worker = start_worker(queue, ready=False)

    assert worker.wait_exit(seconds=20) not in (0, None)
    log = worker.log_file.read_text()
    assert sentence in log
    assert "Traceback" not in log
    assert worker.lines() == []
    assert queue.depth().visible == 1


def test_another_max_receive_count_is_refused(
    make_queue: Callable[..., Queue], start_worker: Start
) -> None:
    queue = make_queue(max_receive_count=3)

    worker = start_worker(queue, ready=False)

    assert worker.wait_exit(seconds=20) != 0
    assert "maxReceiveCount 3, the policy says 5" in worker.log_file.read_text()


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--pool=solo", "leave --pool out"),
        ("--pool=threads", "leave --pool out"),
        ("-B", "leave -B (--beat) out"),
        ("-E", "leave -E out"),
        ("--statedb=state", "leave --statedb out"),
        ("--purge", "leave --purge out"),
        ("--autoscale=4,1", "leave --autoscale out"),
        ("--pool-start-method=spawn", "leave --pool-start-method out"),
        ("--detach", "leave -D (--detach) out"),
    ],
)
def test_an_option_that_this_transport_cannot_serve_is_refused(
    queue: Queue, start_worker: Start, tmp_path: Path, option: str, sentence: str
) -> None:
    queue.call("record", "x")

    worker = start_worker(
        queue, options=[option.replace("=state", f"={tmp_path}/state")], ready=False
    )

    assert worker.wait_exit(seconds=20) not in (0, None)
    log = worker.log_file.read_text()
    assert sentence in log
    assert "Traceback" not in log
    assert queue.depth().visible == 1


def test_the_preflight_can_be_skipped(queue: Queue, start_worker: Start) -> None:
    queue.set_attributes({"RedrivePolicy": ""})

    worker = start_worker(queue, options=["--skip-preflight"])

    queue.call("record", "x")
    worker.wait_for("x")
