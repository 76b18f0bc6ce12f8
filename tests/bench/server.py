"""The SQS server that every contestant works against: it counts calls and adds latency.

fauxqs, because it stays fast with a deep backlog. It needs Node and npm; where they are missing,
ministack behind the fault proxy stands in, with smaller backlogs.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import requests

from skincare.local.sqs import REGION, SQSServer, free_port
from skincare.local.supervised import Supervised
from tests.faults.faults import Forward
from tests.faults.proxy import FaultProxy
from tests.faults.wire import Answer, Request

SOURCE = Path(__file__).parent / "server"
FOLDER = Path(sys.prefix) / "bench"
FILES = ("package.json", "package-lock.json", "server.mjs")
INSTALL_SECONDS = 300
EMPTY_POLL_SECONDS = 0.1


class BenchServer(Protocol):
    """An SQS server without queues."""

    name: str
    endpoint_url: str
    max_backlog: int

    def set_latency(self, seconds: float) -> None:
        """Add this to each call from now on, both ways in one."""

    def calls(self, queue: str) -> dict[str, int]:
        """How many calls of each action named this queue since `forget`."""

    def forget(self, queue: str) -> None: ...

    def close_gate(self, queue: str) -> None:
        """Answer every poll of the queue as if it were empty, so that it can be filled."""

    def open_gate(self, queue: str) -> None: ...


@contextmanager
def bench_server() -> Iterator[BenchServer]:
    """The best server that this machine can run, for the time of the `with` block."""
    with ExitStack() as stack:
        if install():
            yield stack.enter_context(_fauxqs())
        else:
            upstream = stack.enter_context(SQSServer())
            proxy = stack.enter_context(FaultProxy(upstream.endpoint_url))
            yield Ministack(proxy)


def install() -> bool:
    """Put fauxqs and its Node into FOLDER, versions and hashes as locked; False if that fails."""
    npm = shutil.which("npm")
    if all(_same(name) for name in FILES) and (FOLDER / "node_modules" / "fauxqs").exists():
        return True
    if npm is None:
        print("npm is not installed.", file=sys.stderr)
        return False
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for name in FILES[:2]:
        shutil.copy(SOURCE / name, FOLDER)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        subprocess.run(command, cwd=FOLDER, check=True, timeout=INSTALL_SECONDS)
    except (subprocess.SubprocessError, OSError) as error:
        print(f"fauxqs cannot be installed: {error}", file=sys.stderr)
        return False
    shutil.copy(SOURCE / FILES[2], FOLDER)  # last: it says that the rest is whole
    return True


def _same(name: str) -> bool:
    installed = FOLDER / name
    return installed.exists() and installed.read_bytes() == (SOURCE / name).read_bytes()


class Fauxqs:
    """fauxqs with the hooks of server/server.mjs."""

    name = "fauxqs 2.4.1"
    max_backlog = 20_000

    def __init__(self, port: int) -> None:
        self.endpoint_url = f"http://127.0.0.1:{port}"

    def set_latency(self, seconds: float) -> None:
        self._ask("PUT", f"latency/{seconds * 1000:g}")

    def calls(self, queue: str) -> dict[str, int]:
        return self._ask("GET", f"counts/{queue}")

    def forget(self, queue: str) -> None:
        self._ask("DELETE", f"counts/{queue}")

    def close_gate(self, queue: str) -> None:
        self._ask("PUT", f"gate/{queue}")

    def open_gate(self, queue: str) -> None:
        self._ask("DELETE", f"gate/{queue}")

    def answers(self) -> bool:
        try:
            self.calls("none")
        except requests.RequestException:
            return False
        return True

    def _ask(self, method: str, path: str) -> Any:
        answer = requests.request(method, f"{self.endpoint_url}/_bench/{path}", timeout=5)
        return answer.json()


@contextmanager
def _fauxqs() -> Iterator[Fauxqs]:
    port = free_port()
    command = [str(FOLDER / "node_modules" / ".bin" / "node"), FILES[2], str(port), REGION]
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": str(FOLDER)}
        with Supervised(command, name="fauxqs", cwd=FOLDER, env=environment) as program:
            server = Fauxqs(port)
            program.wait_ready(server.answers)
            yield server


class _EmptyPoll:
    """A poll that finds no message; the server never sees it."""

    async def answer(self, request: Request, forward: Forward) -> Answer:
        await asyncio.sleep(EMPTY_POLL_SECONDS)
        return Answer.of({})


class Ministack:
    """ministack behind the fault proxy. The proxy shares the cores with what is measured."""

    name = "ministack 1.5.33 behind a proxy"
    max_backlog = 1_500

    def __init__(self, proxy: FaultProxy) -> None:
        self._proxy = proxy
        self._gates = ExitStack()
        self.endpoint_url = proxy.url

    def set_latency(self, seconds: float) -> None:
        self._proxy.latency = seconds

    def calls(self, queue: str) -> dict[str, int]:
        counts: dict[str, int] = {}
        for call in self._proxy.calls(queue=queue):
            counts[call.action] = counts.get(call.action, 0) + 1
        return counts

    def forget(self, queue: str) -> None:
        self._proxy.forget()

    def close_gate(self, queue: str) -> None:
        self._gates.enter_context(
            self._proxy.inject(_EmptyPoll(), action="ReceiveMessage", queue=queue)
        )

    def open_gate(self, queue: str) -> None:
        self._gates.close()
