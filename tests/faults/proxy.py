"""An HTTP proxy in front of an SQS server that breaks calls on demand and counts them all.

    with FaultProxy("http://127.0.0.1:4566") as proxy:
        client = boto3.client("sqs", endpoint_url=proxy.url, …)
        proxy.inject(Status(503), action="ReceiveMessage", queue=queue_url, times=3)
        …
        assert len(proxy.calls("DeleteMessageBatch", queue=queue_url)) == 2

It runs in a thread of the test's process. Whatever host the queue URLs in the answers name,
clients that are given `endpoint_url` keep calling the proxy.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from skincare.local.sqs import free_port
from tests.faults.faults import ConnectionDroppedError, Fault, Forward
from tests.faults.wire import Answer, Request, queue_name, read_answer, read_request

# Servers close idle connections after some seconds; one that is younger is safe to use again.
IDLE_CONNECTION_SECONDS = 2.0
_MAX_LINE_BYTES = 1 << 20


@dataclass
class Call:
    """One API call as the proxy saw it. Times are `time.time()` seconds."""

    action: str
    queue: str
    document: dict[str, Any]
    access_key: str
    started: float
    fault: Fault | None = None
    status: int | None = None
    """HTTP status of the answer; None while it is open, or when it never got one."""
    finished: float | None = None

    @property
    def entries(self) -> int:
        """How many entries a batch call carries; 1 for any other call."""
        return len(self.document.get("Entries", [None]))


@dataclass
class Injection:
    """A fault and the calls it is for."""

    fault: Fault
    action: str | None
    queue: str | None
    times: int | None
    probability: float
    hits: int = 0
    cleared: bool = field(default=False, repr=False)

    def takes(self, request: Request, chance: random.Random) -> bool:
        return (
            not self.cleared
            and (self.times is None or self.hits < self.times)
            and self.action in (None, request.action)
            and self.queue in (None, request.queue)
            and (self.probability >= 1 or chance.random() < self.probability)
        )

    def clear(self) -> None:
        """No further call is broken; a call that hangs keeps hanging."""
        self.cleared = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()


class FaultProxy:
    """See the module's docstring. `latency` (seconds) is added to every call, broken or not."""

    def __init__(self, upstream: str, *, latency: float = 0.0, seed: int = 1) -> None:
        url = urlsplit(upstream)
        assert url.hostname is not None
        self._upstream = (url.hostname, url.port or 80)
        self.latency = latency
        self._chance = random.Random(seed)  # noqa: S311
        self._calls: list[Call] = []
        self._injections: list[Injection] = []
        self._idle: deque[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = deque()
        self._clients: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._exchanges: set[asyncio.Task[Answer]] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy")
        # No outgoing connection is given it while the proxy refuses to listen.
        self.port = free_port()

    # What a test uses

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self.listen()
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()
        self._run(self._close_upstream())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def inject(
        self,
        fault: Fault,
        *,
        action: str | None = None,
        queue: str | None = None,
        times: int | None = None,
        probability: float = 1.0,
    ) -> Injection:
        """Breaks the calls for `action` (None: any) on `queue` (URL or name; None: any), `times`
        times (None: until cleared). A later injection is asked first. Also a context manager."""
        name = queue if queue is None else queue_name(queue)
        injection = Injection(fault, action, name, times, probability)
        self._injections.insert(0, injection)
        return injection

    def clear(self) -> None:
        """Ends every injection and the added latency, and takes connections again."""
        self.latency = 0.0
        for injection in self._injections:
            injection.clear()
        self._injections.clear()
        self.listen()

    def calls(self, action: str | None = None, *, queue: str | None = None) -> list[Call]:
        """The calls so far, in the order in which they came."""
        name = queue if queue is None else queue_name(queue)
        return [
            call
            for call in list(self._calls)
            if action in (None, call.action) and name in (None, call.queue)
        ]

    def forget(self) -> None:
        """Forgets the calls recorded so far."""
        self._calls = []

    @property
    def open_exchanges(self) -> int:
        """How many calls the server has not answered yet, whether or not their clients wait."""
        return len(self._exchanges)

    def refuse(self) -> None:
        """Connections are refused from now on, and the open ones are reset."""
        self._run(self._stop_listening())

    def listen(self) -> None:
        """Takes connections (again), always on the same port."""
        self._run(self._start_listening())

    # In the event loop

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    async def _start_listening(self) -> None:
        if self._server is not None:
            return
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, limit=_MAX_LINE_BYTES
        )

    async def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        clients = dict(self._clients)
        for task, writer in clients.items():
            _reset(writer)
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    async def _close_upstream(self) -> None:
        for exchange in self._exchanges:
            exchange.cancel()
        await asyncio.gather(*self._exchanges, return_exceptions=True)
        for _, _, writer in self._idle:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        self._idle.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients[task] = writer
        try:
            while True:
                request = await read_request(reader)
                answer = await self._answer(request)
                writer.write(answer.to_bytes())
                await writer.drain()
                if answer.cut_at is not None:
                    break
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            # The client went away, or the proxy is told to refuse; either way nobody listens.
            pass
        except ConnectionDroppedError:
            _reset(writer)
        finally:
            del self._clients[task]
            writer.close()

    async def _answer(self, request: Request) -> Answer:
        call = Call(
            request.action, request.queue, request.document, request.access_key, time.time()
        )
        injection = next((i for i in self._injections if i.takes(request, self._chance)), None)
        if injection is not None:
            injection.hits += 1
            call.fault = injection.fault
        self._calls.append(call)
        if self.latency:
            await asyncio.sleep(self.latency)
        forward: Forward = self._forward
        try:
            if injection is None:
                answer = await forward(request)
            else:
                answer = await injection.fault.answer(request, forward)
            call.status = answer.status
        finally:
            call.finished = time.time()
        return answer

    async def _forward(self, request: Request) -> Answer:
        """Shielded: a server finishes what it was asked, though the client no longer waits; above
        all, a poll whose client has gone still swallows the next message, as on AWS."""
        exchange = asyncio.create_task(self._exchange(request))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._exchanges.discard)
        return await asyncio.shield(exchange)

    async def _exchange(self, request: Request) -> Answer:
        reader, writer = await self._connection()
        try:
            writer.write(request.raw)
            answer = await read_answer(reader)
        except BaseException:
            writer.close()
            raise
        self._idle.append((time.monotonic(), reader, writer))
        return answer

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            since, reader, writer = self._idle.pop()
            if time.monotonic() - since < IDLE_CONNECTION_SECONDS and not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(*self._upstream, limit=_MAX_LINE_BYTES)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Closes with RST, as a crashed peer or a firewall does, not with an orderly end."""
    raw = writer.get_extra_info("socket")
    if raw is not None:
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
