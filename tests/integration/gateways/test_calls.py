"""Calls to a gateway that is away, slow, broken or somebody else: one refusal for all, and soon."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from payments.exceptions import GatewayUnavailable
from payments.providers.http import Answer, call
from tests.log_lines import captured

KEY = "SB-Mid-server-never-to-be-logged"


@contextmanager
def server(
    talk: Callable[[socket.socket], None], *, context: ssl.SSLContext | None = None
) -> Iterator[str]:
    """A server that reads a request and then does what `talk` does; yields its address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with suppress(OSError), connection:
                wrapped = context.wrap_socket(connection, server_side=True) if context else None
                with wrapped or connection as used:
                    used.recv(65536)
                    talk(used)

    threading.Thread(target=serve, daemon=True).start()
    scheme = "https" if context else "http"
    yield f"{scheme}://localhost:{listener.getsockname()[1]}"
    listener.close()


def sends(text: str) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(text.encode())


def says(status: str, body: str, *headers: str) -> Callable[[socket.socket], None]:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body.encode())}", *headers, "", body]
    return sends("\r\n".join(lines))


def hangs(connection: socket.socket) -> None:
    while connection.recv(1024):
        pass


def drips(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    pause = threading.Event()
    while not pause.wait(0.05):
        connection.sendall(b" ")


def floods(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n[")
    while True:
        connection.sendall(b"1," * 32768)


def ask(url: str) -> Answer:
    return call("GET", f"{url}/status", provider="midtrans", action="status", key=KEY)


def test_an_answer_is_read_whole_whatever_its_status() -> None:
    with server(says("404 Not Found", '{"status_code": "404", "amount": 1.50}')) as url:
        answer = ask(url)
    assert (answer.status, str(answer.document["amount"])) == (404, "1.50")
    assert not answer.is_ok


FAULTS = {
    "500": (says("500 Internal Server Error", "{}"), "HTTP 500"),
    "503": (says("503 Service Unavailable", "{}"), "HTTP 503"),
    "429": (says("429 Too Many Requests", "{}", "Retry-After: 7"), "HTTP 429"),
    "a redirect": (says("302 Found", "", "Location: http://127.0.0.1:9/"), "HTTP 302"),
    "HTML": (says("200 OK", "<html>Maintenance</html>"), "must be UTF-8 JSON"),
    "an empty answer": (says("200 OK", ""), "must be UTF-8 JSON"),
    "garbage": (sends("\x00\x01\x02"), "Error"),
    "nothing": (sends(""), "ProtocolError"),
    "a key twice": (says("200 OK", '{"a": 1, "a": 2}'), "must not name a key twice"),
    "an answer that is cut off": (sends('HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"a'), ""),
    "half a line": (sends("HTTP/1.1 200"), ""),
    "no answer": (hangs, "ReadTimeoutError"),
    "an answer byte by byte": (drips, "took too long"),
    "an answer without end": (floods, "more than"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_cannot_be_relied_on_is_worth_another_try(fault: str, settings: Any) -> None:
    settings.GATEWAY_CONNECT_SECONDS, settings.GATEWAY_READ_SECONDS = 1, 0.5
    talk, reason = FAULTS[fault]
    with server(talk) as url, pytest.raises(GatewayUnavailable) as refusal:
        ask(url)
    assert reason in refusal.value.reason
    assert refusal.value.retry_after == (7.0 if fault == "429" else None)


def test_a_gateway_that_does_not_listen_is_away(settings: Any) -> None:
    settings.GATEWAY_CONNECT_SECONDS = 1
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(GatewayUnavailable, match="NewConnectionError"):
            ask(f"http://127.0.0.1:{port}")


def test_a_name_that_there_is_not_is_away() -> None:
    with pytest.raises(GatewayUnavailable, match="NameResolutionError"):
        ask("http://gateway.invalid")


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    # given
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
        ],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    # then
    heard: list[bool] = []

    def talk(connection: socket.socket) -> None:
        heard.append(True)
        says("200 OK", "{}")(connection)

    with (
        server(talk, context=context) as url,
        pytest.raises(GatewayUnavailable, match="SSLError"),
    ):
        ask(url)
    assert heard == []


def test_no_line_and_no_error_holds_the_key() -> None:
    with (
        captured() as lines,
        server(says("500 Internal Server Error", "{}")) as url,
        pytest.raises(GatewayUnavailable) as refusal,
    ):
        ask(url)
    assert [line["error"] for line in lines.of("gateway_call_failed")] == ["HTTP 500"]
    assert len(lines.metric("GatewayCallsFailed")) > 0
    assert KEY not in lines.text + str(refusal.value)
