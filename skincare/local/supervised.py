"""Start a program that ends when this process ends, even by SIGKILL, and leaves no file behind."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Self

from skincare.local import watchdog
from skincare.local.deadline import wait_until
from skincare.local.unprivileged import User


class ProgramError(RuntimeError):
    """The program ended by itself or was not ready in time; the message ends with its log."""


class Supervised:
    """A program under its watchdog (watchdog.py); a context manager that stops it."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        name: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        log: Path | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
        grace: float = 10.0,
        user: User | None = None,
        remove: Path | None = None,
    ) -> None:
        """Start `command`.

        env: its whole environment (default: ours).
        log: file that its output is appended to (default: a nameless temporary one).
        grace: seconds between `stop_signal` and SIGKILL.
        user: whom to run as.
        remove: folder that goes away with it.
        """
        self.name = name
        self._log: IO[bytes] = (
            log.open("ab+") if log else tempfile.TemporaryFile()  # noqa: SIM115 closed by stop()
        )
        options = [f"--parent={os.getpid()}", f"--signal={stop_signal.name}", f"--grace={grace}"]
        if user:
            options += [f"--uid={user.uid}", f"--gid={user.gid}"]
        if remove:
            options += [f"--remove={remove}"]
        self._watchdog = subprocess.Popen(  # noqa: S603 our own program
            [sys.executable, "-I", watchdog.__file__, *options, "--", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        self.pid = self._read_pid()

    def _read_pid(self) -> int:
        assert self._watchdog.stdout  # noqa: S101 for the type checker: it is a pipe
        words = self._watchdog.stdout.readline().split()
        if words:
            return int(words[1])
        self._watchdog.wait()
        reason = self.log_tail()
        self.stop()
        raise ProgramError(f"{self.name} did not start\n{reason}")

    @property
    def running(self) -> bool:
        return self._watchdog.poll() is None

    @property
    def watchdog_pid(self) -> int:
        return self._watchdog.pid

    def log_tail(self, lines: int = 20) -> str:
        """The last lines that the program wrote."""
        size = os.fstat(self._log.fileno()).st_size
        start = max(0, size - 64 * 1024)
        text = os.pread(self._log.fileno(), size - start, start).decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def wait_ready(self, is_ready: Callable[[], bool], *, seconds: float = 30.0) -> None:
        """Poll `is_ready` until true. Raises ProgramError when the program ends or time is over."""

        def ready_or_ended() -> bool:
            return not self.running or is_ready()

        try:
            wait_until(ready_or_ended, seconds=seconds, what=f"{self.name} to be ready")
        except TimeoutError as error:
            raise ProgramError(f"{error}\n{self.log_tail()}") from error
        if not self.running:
            status = self._watchdog.returncode
            raise ProgramError(f"{self.name} ended with status {status}\n{self.log_tail()}")

    def listens(self, *ports: int) -> bool:
        """Whether it, or a process that it started, takes connections at all these TCP ports.

        That somebody answers there is not enough: another program may have taken a port after it
        was found free.
        """
        import psutil  # here: the benchmark's peers, in environments of their own, have none

        try:
            program = psutil.Process(self.pid)
            found = {
                connection.laddr.port
                for process in (program, *program.children(recursive=True))
                for connection in process.net_connections("tcp")
                if connection.status == psutil.CONN_LISTEN
            }
        except psutil.NoSuchProcess:
            return False
        return found.issuperset(ports)

    def wait_listening(self, *ports: int, seconds: float = 30.0) -> None:
        """Wait until it listens at these ports. Raises ProgramError as `wait_ready` does."""
        self.wait_ready(lambda: self.listens(*ports), seconds=seconds)

    def restart(self, with_signal: signal.Signals | None = None) -> None:
        """Stop the program with this signal (default SIGTERM), start the same command again."""
        assert self._watchdog.stdin  # noqa: S101 for the type checker: it is a pipe
        self._watchdog.stdin.write(f"restart {(with_signal or signal.SIGTERM).name}\n".encode())
        self._watchdog.stdin.flush()
        self.pid = self._read_pid()

    def stop(self) -> int:
        """End the program and its folder. Returns its exit status (128 + n: ended by signal n)."""
        assert self._watchdog.stdin  # noqa: S101 for the type checker: it is a pipe
        assert self._watchdog.stdout  # noqa: S101 for the type checker: it is a pipe
        with contextlib.suppress(BrokenPipeError):
            self._watchdog.stdin.close()
        status = self._watchdog.wait()
        self._watchdog.stdout.close()
        self._log.close()
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
