"""The SQS server that every contestant works against: it counts calls and adds latency.

fauxqs, because it stays fast with a deep backlog. It needs Node and npm; where they are missing,
ministack behind the fault proxy stands in, with smaller backlogs.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, Protocol

import requests

from skincare.local.sqs import REGION, SQSServer, free_port
from skincare.local.supervised import Supervised
from tests.bench import npm
from tests.faults.faults import Fault, Forward, Hang, Slow, Status
from tests.faults.proxy import FaultProxy, Injection
from tests.faults.wire import Answer, Request

Health = Literal["healthy", "slow", "refusing", "hanging"]
"""How SQS answers the senders: as told, after a second, with 503, or not at all."""

SLOW_SECONDS = 1.0
EMPTY_POLL_SECONDS = 0.1


class BenchServer(Protocol):
    """An SQS server without queues."""

    name: str
    endpoint_url: str
    max_backlog: int

    def set_latency(self, seconds: float) -> None:
        """Add this to each call from now on, both ways in one."""

    def set_health(self, health: Health) -> None:
        """Answer every sending call so from now on."""

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
        if npm.SERVER.install():
            yield stack.enter_context(_fauxqs())
        else:
            upstream = stack.enter_context(SQSServer())
            proxy = stack.enter_context(FaultProxy(upstream.endpoint_url))
            yield Ministack(proxy)


class Fauxqs:
    """fauxqs with the hooks of server/server.mjs."""

    name = "fauxqs 2.4.1"
    max_backlog = 20_000

    def __init__(self, port: int) -> None:
        self.endpoint_url = f"http://127.0.0.1:{port}"

    def set_latency(self, seconds: float) -> None:
        self._ask("PUT", f"latency/{seconds * 1000:g}")

    def set_health(self, health: Health) -> None:
        self._ask("PUT", f"health/{health}")

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
    folder = npm.SERVER.folder
    command = [str(npm.NODE), npm.SERVER.program, str(port), REGION]
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": str(folder)}
        with Supervised(command, name="fauxqs", cwd=folder, env=environment) as program:
            server = Fauxqs(port)
            program.wait_ready(server.answers)
            yield server


class _EmptyPoll:
    """A poll that finds no message; the server never sees it."""

    async def answer(self, request: Request, forward: Forward) -> Answer:
        await asyncio.sleep(EMPTY_POLL_SECONDS)
        return Answer.of({})


_FAULTS: dict[Health, Fault] = {
    "slow": Slow(SLOW_SECONDS),
    "refusing": Status(503),
    "hanging": Hang(),
}


class Ministack:
    """ministack behind the fault proxy. The proxy shares the cores with what is measured."""

    name = "ministack 1.5.33 behind a proxy"
    max_backlog = 1_500

    def __init__(self, proxy: FaultProxy) -> None:
        self._proxy = proxy
        self._gates = ExitStack()
        self._faults: list[Injection] = []
        self.endpoint_url = proxy.url

    def set_latency(self, seconds: float) -> None:
        self._proxy.latency = seconds

    def set_health(self, health: Health) -> None:
        for injection in self._faults:
            injection.clear()
        self._faults.clear()
        if fault := _FAULTS.get(health):
            for action in ("SendMessage", "SendMessageBatch"):
                self._faults.append(self._proxy.inject(fault, action=action))

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
