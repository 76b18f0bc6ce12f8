"""The HTTP client on kombu's loop, against real sockets."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from kombu.asynchronous import Hub

from skincare.local.deadline import busyness
from skincare.sqs.http import HttpClient, Reply


class Echo(BaseHTTPRequestHandler):
    """Answers with the path, the body and the number of the client's port."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/hang":
            time.sleep(1)
        answer = f"{self.path} {body.decode()[:20]} {self.client_address[1]}".encode()
        self.send_response(503 if self.path == "/ill" else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Nothing."""


class Server(ThreadingHTTPServer):
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """Nothing: clients that hang up are what some tests are about."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with Server(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def client(hub: Hub) -> Iterator[HttpClient]:
    client = HttpClient(hub, connect_timeout=1, ca_bundle=None)
    yield client
    client.close()


def run(hub: Hub, finished: Callable[[], bool], seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds * busyness()
    while not finished():
        assert time.monotonic() < deadline, "no answer"
        hub.run_once()


def post(hub: Hub, client: HttpClient, url: str, body: bytes = b"x", timeout: float = 5) -> Reply:
    replies: list[Reply] = []
    client.post(url, {"X-Test": "1"}, body, timeout=timeout, done=replies.append)
    run(hub, lambda: bool(replies))
    return replies[0]


def test_an_answer_arrives(hub: Hub, client: HttpClient, server: str) -> None:
    reply = post(hub, client, f"{server}/path", b"body")

    assert reply.status == 200
    assert reply.body.startswith(b"/path body ")


def test_an_error_is_an_answer(hub: Hub, client: HttpClient, server: str) -> None:
    assert post(hub, client, f"{server}/ill").status == 503


def test_connections_are_kept(hub: Hub, client: HttpClient, server: str) -> None:
    ports = {post(hub, client, server).body.split()[-1] for _ in range(5)}

    assert len(ports) == 1


def test_a_long_body_is_sent_whole(hub: Hub, client: HttpClient, server: str) -> None:
    assert post(hub, client, server, b"x" * 2_000_000).status == 200


def test_calls_that_are_answered_leave_no_timers_behind(
    hub: Hub, client: HttpClient, server: str
) -> None:
    for _ in range(50):
        post(hub, client, server, timeout=20)

    assert len(hub.timer._queue) <= 3


def test_many_at_once(hub: Hub, client: HttpClient, server: str) -> None:
    replies: list[Reply] = []
    for number in range(20):
        client.post(f"{server}/{number}", {}, b"x", timeout=5, done=replies.append)

    run(hub, lambda: len(replies) == 20)

    assert {reply.status for reply in replies} == {200}


def test_no_answer_in_time_is_an_error(hub: Hub, client: HttpClient, server: str) -> None:
    started = time.monotonic()

    reply = post(hub, client, f"{server}/hang", timeout=0.3)

    assert 0.25 < time.monotonic() - started < 0.9 * busyness()
    assert reply.status == 0
    assert "timed out" in reply.error


@pytest.mark.parametrize("host", ["127.0.0.1:1", "no-such-host.invalid"])
def test_no_connection_is_an_error(hub: Hub, client: HttpClient, host: str) -> None:
    reply = post(hub, client, f"http://{host}/")

    assert reply.status == 0
    assert reply.error


def test_a_server_that_hangs_up_is_an_error(hub: Hub, client: HttpClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: listener.accept()[0].close())
        thread.start()

        reply = post(hub, client, f"http://127.0.0.1:{listener.getsockname()[1]}/")

        thread.join()
    assert reply.status == 0


def test_an_error_of_the_caller_does_not_reach_the_loop(
    hub: Hub, client: HttpClient, server: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Reply) -> None:
        raise RuntimeError

    client.post(server, {}, b"x", timeout=5, done=fail)
    run(hub, lambda: "http_callback_failed" in caplog.messages)

    assert post(hub, client, server).status == 200


def test_an_idle_client_does_not_wake_the_loop(hub: Hub, client: HttpClient, server: str) -> None:
    post(hub, client, server)
    run(hub, lambda: not [entry for entry in hub.timer.queue if not entry.entry.canceled])

    assert not hub.readers
    assert not hub.writers


def test_closing_drops_what_is_under_way(hub: Hub, client: HttpClient, server: str) -> None:
    replies: list[Reply] = []
    client.post(f"{server}/hang", {}, b"x", timeout=5, done=replies.append)
    hub.run_once()

    client.close()
    client.close()

    assert replies == []
