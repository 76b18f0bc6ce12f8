"""pytest-celery's nodes over local processes: the handle it takes for a container is a process."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
from pytest_celery import CeleryTestBroker, CeleryTestWorker

from skincare.local.deadline import wait_until
from skincare.local.supervised import Supervised

STOP_SECONDS = 40.0


class ProcessHandle:
    """What pytest-celery's nodes ask of a container, answered by a process of this machine."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        name: str,
        environment: Mapping[str, str],
        folder: Path,
        ready_prompt: str,
    ) -> None:
        self.id = uuid4().hex
        self.name = name
        self.celeryconfig: dict[str, Any] = {}
        self._log = folder / f"{name}.log"
        self._ready_prompt = ready_prompt
        self._process = Supervised(
            command, name=name, env={**os.environ, **environment}, log=self._log
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> str:
        return "running" if self._process.running else "exited"

    def reload(self) -> None:
        """A container's state is a copy that must be fetched again; a process's is not."""

    def ready(self) -> bool:
        self._process.wait_ready(lambda: self._ready_prompt in self.logs(), seconds=60)
        return True

    def logs(self) -> str:
        return self._log.read_text(errors="replace")

    def children(self) -> list[psutil.Process]:
        """Return the pool's processes."""
        return psutil.Process(self.pid).children(recursive=True)

    def kill(self, signal: str | int = "SIGKILL") -> None:
        os.kill(self.pid, signal if isinstance(signal, int) else _number(signal))
        wait_until(
            lambda: self.status == "exited", seconds=STOP_SECONDS, what=f"the end of {self.name}"
        )

    def restart(self, timeout: int = 0) -> None:
        self._process.restart()

    def stop(self) -> int:
        """End it as ECS does; return its exit status."""
        return self._process.stop()

    def teardown(self) -> None:
        self.stop()


def _number(name: str) -> int:
    return signal.Signals[name].value


class LocalWorker(CeleryTestWorker):
    """A real `celery -A skincare worker` on this machine."""

    container: ProcessHandle

    def hostname(self) -> str:
        return self.container.name


class LocalBroker(CeleryTestBroker):
    """The SQS server of this session; it is stopped by the fixture that started it."""

    def ready(self) -> bool:
        return True

    def teardown(self) -> None:
        """Leave the server to the other tests."""


def worker_command(name: str, *arguments: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "skincare",
        "worker",
        "--hostname",
        name,
        *arguments,
    ]
