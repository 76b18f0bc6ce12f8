"""When a task's process counts as hung, and when killing it did not help."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass

import pytest

from skincare.sqs import SQSPolicy
from skincare.sqs.watchdog import Watchdog, Watched, is_hung

POLICY = SQSPolicy()  # hard limit 90 s, margin 30 s


@dataclass
class Run:
    accepted_at: float | None = None
    pid: int | None = None
    withdrawn: bool = False

    def withdraw(self) -> None:
        self.withdrawn = True


@pytest.mark.parametrize(
    ("run", "age", "hung"),
    [
        (Run(pid=7), 29, False),
        (Run(pid=7), 31, True),
        (Run(pid=7, accepted_at=0), 119, False),
        (Run(pid=7, accepted_at=0), 121, True),
        (Run(), 119, False),
        (Run(), 121, True),
        (None, 119, False),
        (None, 121, True),
    ],
)
def test_a_task_is_hung_when_it_has_had_more_time_than_it_can_need(
    run: Run | None, age: float, hung: bool
) -> None:
    assert is_hung(Watched(run, 0.0, {}), policy=POLICY, now=age) is hung


def test_the_process_of_a_hung_task_is_killed_and_the_task_withdrawn() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        watchdog, run = Watchdog(POLICY), Run(pid=process.pid)
        watchdog.end(Watched(run, 0.0, {}))
        assert process.wait(timeout=10) == -9

    watchdog.supervise()
    assert (run.withdrawn, watchdog.stuck) == (True, "")


def test_a_task_that_no_process_is_known_to_have_makes_the_worker_ill_until_one_ends() -> None:
    watchdog = Watchdog(POLICY)

    watchdog.end(Watched(Run(), 0.0, {}))
    assert "no process is known" in watchdog.stuck
    watchdog.task_ended()

    assert watchdog.stuck == ""


def test_a_process_that_may_not_be_killed_makes_the_worker_ill(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    watchdog = Watchdog(POLICY)
    monkeypatch.setattr(os, "killpg", refuse)
    watchdog.end(Watched(Run(pid=7), 0.0, {}))

    assert watchdog.stuck == "process 7 hangs and cannot be killed: Operation not permitted"


def test_a_killed_process_that_does_not_end_makes_the_worker_ill(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    monkeypatch.setattr(os, "kill", lambda *_: None)
    watchdog = Watchdog(POLICY)
    watchdog.end(Watched(Run(pid=7), 0.0, {}))
    watchdog.supervise()
    assert watchdog.stuck == ""

    later = time.monotonic() + 16
    monkeypatch.setattr(time, "monotonic", lambda: later)
    watchdog.supervise()
    watchdog.task_ended()

    assert watchdog.stuck == "process 7 hangs and was killed, but does not end"
