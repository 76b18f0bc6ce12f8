"""Looks after tasks whose processes do not answer.

Celery's time limits begin when a process accepts its task. One that is frozen, or whose interpreter
is kept busy by a thread that an earlier task left, accepts nothing; without a watchdog its slot and
its message would be held forever.
"""

import logging
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from skincare.sqs.policy import SQSPolicy

log = logging.getLogger(__name__)

#: Seconds within which a killed process has to be gone.
_GONE_WITHIN = 15.0


class Run(Protocol):
    """A task that was given to the pool."""

    @property
    def accepted_at(self) -> float | None:
        """`time.monotonic()` at which a process accepted it; None where none did."""

    @property
    def pid(self) -> int | None:
        """The process that has it, as far as is known."""

    def withdraw(self) -> None:
        """Keep the pool from giving it to another process."""


@dataclass(frozen=True)
class Watched:
    """A run, and when it was given to the pool (`time.monotonic()`)."""

    run: Run | None
    since: float
    log_fields: dict[str, Any]


def is_hung(watched: Watched, *, policy: SQSPolicy, now: float) -> bool:
    """Decide whether a run has had more time than it can need.

    A process that is free accepts at once; nothing is done before.
    """
    run = watched.run
    if run is not None and run.accepted_at is not None:
        return now - run.accepted_at > policy.hard_time_limit + policy.watchdog_margin
    if run is not None and run.pid is not None:
        return now - watched.since > policy.watchdog_margin
    return now - watched.since > policy.hard_time_limit + policy.watchdog_margin


class Watchdog:
    """Kills processes that hang, and knows when even that does not help."""

    def __init__(self, policy: SQSPolicy) -> None:
        self._policy = policy
        self._killed: dict[int, float] = {}
        #: Why this worker cannot go on, for its health file; "" while it can.
        self.stuck = ""

    def end(self, watched: Watched) -> None:
        """Kill the process of a run that hangs."""
        run = watched.run
        pid = run.pid if run is not None else None
        log.error("task_hung", extra={**watched.log_fields, "hung_process": pid})
        if run is not None:
            run.withdraw()
        if pid is None:
            self.stuck = "a task hangs, and no process is known to have it"
            return
        try:
            kill_process(pid)
        except OSError as error:
            self.stuck = f"process {pid} hangs and cannot be killed: {error.strerror}"
        else:
            self._killed[pid] = time.monotonic()

    def supervise(self) -> None:
        """See whether what was killed is gone. To be called every few seconds."""
        now = time.monotonic()
        for pid, killed_at in list(self._killed.items()):
            if not _lives(pid):
                del self._killed[pid]
            elif now - killed_at > _GONE_WITHIN:
                self.stuck = f"process {pid} hangs and was killed, but does not end"

    def task_ended(self) -> None:
        """Note that a process works."""
        if not self._killed:
            self.stuck = ""


def kill_process(pid: int) -> None:
    """Kill a process of the pool with what its task has started. Raises OSError."""
    try:
        os.killpg(pid, signal.SIGKILL)  # with what the task has started; see isolate_process
    except ProcessLookupError:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # younger than its group


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
