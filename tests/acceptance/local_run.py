"""`make run`, as a newcomer starts it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from skincare.local.deadline import wait_until


def environment() -> dict[str, str]:
    """A newcomer's: without servers of their own, or settings of these tests.

    Where they work, http goes through a proxy; this one leads nowhere.
    """
    ours = ("DATABASE_URL", "SQS_ENDPOINT_URL", "DJANGO_SETTINGS_MODULE", "EMAIL_URL", "APP_ENV")
    proxies = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    for name in ("no_proxy", "NO_PROXY"):
        inherited.pop(name, None)
    return inherited | dict.fromkeys(proxies, "http://127.0.0.1:9")


@dataclass
class Run:
    """`make run` with a folder of its own, and the file that it prints to."""

    folder: Path
    output: Path
    process: "subprocess.Popen[bytes]"

    @property
    def printed(self) -> str:
        return self.output.read_text()

    def found(self, pattern: str) -> tuple[str, ...]:
        match = re.search(pattern, self.printed)
        assert match, self.printed
        return match.groups() or (match[0],)

    def wait_for(self, sentence: str, *, times: int = 1) -> None:
        wait_until(
            lambda: self.printed.count(sentence) >= times or self.process.poll() is not None,
            seconds=200,
            what=f"{sentence!r}, {times} times",
        )
        assert self.printed.count(sentence) >= times, self.printed

    def shell(self, script: str) -> str:
        """What a developer's shell prints that has loaded the file."""
        done = subprocess.run(
            ["bash", "-euc", f". {self.folder / 'env'}; {script}"],
            env={"PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def order(self, verb: str) -> str:
        """What `make stop-worker` and `make start-worker` print."""
        command = [sys.executable, "-m", "skincare.local.control", verb, "worker"]
        return subprocess.run(
            [*command, "--folder", self.folder], capture_output=True, text=True, check=True
        ).stdout


@contextmanager
def started(folder: Path, output: Path) -> Iterator[Run]:
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "skincare.local.run", "--folder", folder],
            env=environment(),
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    run = Run(folder, output, process)
    try:
        run.wait_for("Ctrl-C")
        yield run
    finally:
        process.kill()
        process.wait()
