"""HTTP clients in a closed loop: each sends its next request when it has its last answer.

Bare sockets, because the clients share the cores with what they measure.
"""

import json
import socket
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    seconds: float
    headers: bytes = b""

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Load:
    """What came of one run; `p50` and `p99` are milliseconds from the first byte to the last."""

    answers: list[Answer]
    seconds: float

    @property
    def per_second(self) -> float:
        return len(self.answers) / self.seconds

    @property
    def p50(self) -> float:
        return self._cut(49)

    @property
    def p99(self) -> float:
        return self._cut(98)

    def _cut(self, which: int) -> float:
        times = [answer.seconds * 1000 for answer in self.answers]
        return statistics.quantiles(times, n=100, method="inclusive")[which]


class Client:
    """One connection that is kept as long as the server keeps it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def send(self, request: bytes) -> Answer:
        """Raises OSError and ConnectionError where there is no whole answer."""
        started = time.perf_counter()
        if self._socket is None:
            self._socket = socket.create_connection(
                ("127.0.0.1", self._port), timeout=TIMEOUT_SECONDS
            )
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(request)
        head, body = self._read_head()
        lines = head.lower()
        length = int(lines.split(b"\r\ncontent-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += self._receive()
        seconds = time.perf_counter() - started
        if b"\r\nconnection: close" in lines:
            self.close()
        return Answer(int(head.split(b" ", 2)[1]), body, seconds, head)

    def _read_head(self) -> tuple[bytes, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._receive()
        head, _, body = data.partition(b"\r\n\r\n")
        return head + b"\r\n", body

    def _receive(self) -> bytes:
        assert self._socket
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionError("the server hung up")
        return data

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def post(path: str, document: object, **headers: str) -> bytes:
    """A request with a JSON body; an underscore in a header's name stands for a hyphen."""
    body = json.dumps(document).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def get(path: str, **headers: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def run(port: int, requests: Sequence[bytes], *, clients: int, wanted: int) -> Load:
    """Send all requests, each once, and return the answers in the order of the requests.

    Raises RuntimeError where one is not answered with the status `wanted`.
    """
    answers: dict[int, Answer] = {}
    errors: list[str] = []
    numbers = iter(range(len(requests)))  # next() on it is atomic

    def work() -> None:
        client = Client(port)
        try:
            for number in numbers:
                answer = client.send(requests[number])
                if answer.status != wanted:
                    errors.append(f"{answer.status} instead of {wanted}: {answer.body[:300]!r}")
                    return
                answers[number] = answer
        except OSError as error:
            errors.append(repr(error))
        finally:
            client.close()

    threads = [threading.Thread(target=work) for _ in range(clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    if errors:
        raise RuntimeError(errors[0])
    return Load([answers[number] for number in range(len(requests))], seconds)
