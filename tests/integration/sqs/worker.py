"""Starts the test project's worker as a real process, and reads what it did."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from skincare.local.deadline import wait_until
from skincare.local.supervised import Supervised
from tests.integration.sqs.queue_pair import Queue
from tests.processes import runs

POLICY: dict[str, Any] = {
    "visibility_timeout": 16,
    "soft_time_limit": 4,
    "hard_time_limit": 5,
    "stop_timeout": 30,
    "long_poll": 1,
    "max_receive_count": 5,
    "backoff": (1, 1, 1, 1),
    "backoff_jitter": 0.0,
    "outage_backoff": (0.5, 3.0),
    "concurrency": 2,
    "connect_timeout": 1,
    "read_timeout": 2,
    "attempts": 2,
    "poll_timeout_margin": 2,
}
"""Production's numbers (seconds), made short. They obey the same rules."""

COMMAND = [sys.executable, "-m", "celery", "-A", "tests.integration.sqs.app", "worker"]


class Health(NamedTuple):
    """What `python -m skincare.sqs.health` said."""

    status: int
    reason: str
    cpu_seconds: float


def health(file: Path) -> Health:
    """Runs the health command on this file, as a container's health check does."""
    before = os.times()
    result = subprocess.run(
        [sys.executable, "-m", "skincare.sqs.health", str(file)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    after = os.times()
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    return Health(result.returncode, result.stdout + result.stderr, spent)


class Worker:
    """A `celery worker` process with its diary, log and health file. A context manager."""

    def __init__(
        self,
        folder: Path,
        *,
        endpoint_url: str,
        queues: dict[str, str],
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        revoked: Sequence[str] = (),
        **policy: Any,
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.diary_file = folder / "diary"
        self.log_file = folder / "log"
        self.health_file = folder / "health.json"
        config = {
            "endpoint_url": endpoint_url,
            "queues": queues,
            "policy": {**POLICY, "health_file": str(self.health_file), **policy},
            "diary": str(self.diary_file),
            "revoked": list(revoked),
        }
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("DJANGO_")}
        self.process = Supervised(
            [*COMMAND, *options],
            name="the worker",
            env={**inherited, "TEST_APP": json.dumps(config), **(environment or {})},
            log=self.log_file,
            grace=0.1,
        )
        self.pid = self.process.pid

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        children = self.children()
        self.process.stop()
        for child in children:
            # Each leads a process group of its own, which does not end with the worker's.
            with suppress(psutil.NoSuchProcess):
                child.kill()

    def wait_ready(self, seconds: float = 20.0) -> Worker:
        """Until it has started to consume."""
        self.process.wait_ready(lambda: self.logged("worker_ready") != [], seconds=seconds)
        return self

    # What it did

    def diary(self, step: str = "done", line: str | None = None) -> list[dict[str, Any]]:
        """The entries for this step (and line), in the order in which they were written."""
        entries = _json_lines(self.diary_file)
        return [e for e in entries if e["step"] == step and line in (None, e["line"])]

    def lines(self, step: str = "done") -> list[str]:
        return [entry["line"] for entry in self.diary(step)]

    def receive_counts(self, line: str) -> list[int]:
        """The receive counts of this line's runs that ended."""
        return [entry["receive_count"] for entry in self.diary(line=line)]

    def wait_for(self, line: str, step: str = "done", seconds: float = 10.0) -> dict[str, Any]:
        """The first entry for this line and step. Raises TimeoutError, with the log's end."""
        try:
            wait_until(
                lambda: self.diary(step, line), seconds=seconds, what=f"the worker: {line!r} {step}"
            )
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self._log_end()}") from None
        return self.diary(step, line)[0]

    def wait_for_all(self, lines: Collection[str], seconds: float) -> None:
        """Until each of these lines is done. Raises TimeoutError, with the log's end."""
        try:
            wait_until(
                lambda: set(lines) <= set(self.lines()),
                seconds=seconds,
                what=f"{len(lines)} lines done",
                every=0.1,
            )
        except TimeoutError as error:
            missing = sorted(set(lines) - set(self.lines()))
            raise TimeoutError(f"{error}; missing {missing}\n{self._log_end()}") from None

    def failed_polls(self) -> list[dict[str, Any]]:
        return self.logged("poll_failed")

    def log(self) -> list[dict[str, Any]]:
        return _json_lines(self.log_file)

    def logged(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        """The log lines of this event whose fields have these values."""
        return [
            line
            for line in self.log()
            if line["event"] == event and all(line.get(k) == v for k, v in fields.items())
        ]

    def tracebacks(self) -> list[str]:
        return [line["traceback"] for line in self.log() if "traceback" in line]

    def health(self) -> Health:
        return health(self.health_file)

    def _log_end(self) -> str:
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-30:])

    # Its process

    @property
    def stopping(self) -> bool:
        """It has noticed that it is to end."""
        return self.logged("worker_draining") + self.logged("worker_terminating") != []

    @property
    def running(self) -> bool:
        return psutil.pid_exists(self.pid) and runs(psutil.Process(self.pid))

    def children(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children()
        return []

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def send_signal_to_group(self, number: signal.Signals) -> None:
        os.killpg(os.getpgid(self.pid), number)

    def wait_exit(self, seconds: float) -> int:
        """Its exit status (128 + n: ended by signal n). Raises TimeoutError, with the log's end."""
        try:
            wait_until(lambda: not self.process.running, seconds=seconds, what="the worker's exit")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self._log_end()}") from None
        return self.process.stop()


class Station(NamedTuple):
    """A worker that is ready, and the queue that it consumes."""

    worker: Worker
    queue: Queue


def _json_lines(file: Path) -> list[dict[str, Any]]:
    """The JSON objects in a file that another process is writing: a line without its end is not
    there yet, and a line that is no JSON (a traceback at the interpreter's end) is kept as text."""
    if not file.exists():
        return []
    lines = file.read_text(errors="replace").split("\n")[:-1]
    return [_parsed(line) for line in lines if line.strip()]


def _parsed(line: str) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except ValueError:
        document = None
    return document if isinstance(document, dict) else {"event": line}
