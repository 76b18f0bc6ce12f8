"""Clients by the hundred that send a byte now and then, and never a whole request."""

import contextlib
import itertools
import socket
import threading
from collections.abc import Iterator

#: Requests that begin well: a body, headers, chunks that do not end.
BEGINNINGS = (
    b"POST /v1/checkout HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000\r\n\r\n{",
    b"GET /v1/products HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: a",
    b"POST /v1/webhooks/midtrans HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nFFF\r\nab",
)
#: Seconds between two bytes of one client.
PAUSE = 2.0


@contextlib.contextmanager
def slow_clients(port: int, number: int) -> Iterator[None]:
    """Keep so many slow requests open; whom the server hangs up on begins again."""
    beginnings = itertools.cycle(BEGINNINGS)
    clients = [_begin(port, next(beginnings)) for _ in range(number)]
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(PAUSE):
            for index, client in enumerate(clients):
                try:
                    client.sendall(b"a")
                except OSError:
                    client.close()
                    with contextlib.suppress(OSError):
                        clients[index] = _begin(port, next(beginnings))

    sender = threading.Thread(target=go_on, name="slow clients")
    sender.start()
    try:
        yield
    finally:
        ended.set()
        sender.join()
        for client in clients:
            client.close()


def _begin(port: int, beginning: bytes) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=20)
    client.sendall(beginning)
    return client
