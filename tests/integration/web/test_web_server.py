"""What a client does slowly, wrongly or not at all costs no other client anything."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import psutil
import psycopg
import pytest
import requests
from waitress import wasyncore

from orders.models import Order, Product
from skincare.local.deadline import busyness, wait_until
from skincare.local.sqs import free_port
from skincare.web_server import Server
from tests.integration.orders.shop import a_product
from tests.integration.orders.together import together
from tests.integration.web.conftest import RawClient, StartWeb, Web

pytestmark = pytest.mark.django_db(transaction=True)

BODY_NEVER_COMES = (
    "POST /v1/checkout HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    "Content-Length: 1000\r\n\r\n{"
)
HEADERS_NEVER_END = "GET /v1/products HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: a"
CHUNKS_NEVER_END = (
    "POST /v1/webhooks/midtrans HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    "Transfer-Encoding: chunked\r\n\r\n5\r\nab"
)
#: A body that ends at once, and what somebody else would get the answer to.
CHUNKED = "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
CHUNKED += "GET /v1/products HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def cart_of(product: Product) -> dict[str, object]:
    return {
        "items": [{"sku": product.sku, "quantity": 1}],
        "email": "sari@example.com",
        "payment_method": "sandbox",
    }


def checkout(web: Web, product: Product, **options: object) -> requests.Response:
    return web.post(
        "/v1/checkout",
        **{"data": json.dumps(cart_of(product)), **options},
        headers={"Idempotency-Key": uuid4().hex, "Content-Type": "application/json"},
    )


def checkout_text(product: Product) -> str:
    body = json.dumps(cart_of(product))
    return (
        f"POST /v1/checkout HTTP/1.1\r\nHost: 127.0.0.1\r\nIdempotency-Key: {uuid4().hex}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )


@pytest.mark.parametrize("request_text", [BODY_NEVER_COMES, HEADERS_NEVER_END, CHUNKS_NEVER_END])
def test_slow_requests_by_the_hundred_hold_no_thread_and_are_hung_up_on(
    request_text: str, web: Web, connect: Callable[[Web], RawClient]
) -> None:
    product = a_product()
    slow = [connect(web) for _ in range(200)]
    for client in slow:
        client.send(request_text)

    assert [web.get(path).status_code for path in ("/healthz", "/readyz", "/v1/products")] == [
        200
    ] * 3
    assert checkout(web, product).status_code == 201
    assert [client.answer() for client in slow] == [""] * len(slow)


def test_a_request_that_goes_on_byte_by_byte_has_one_deadline_for_all_of_it(
    web: Web, connect: Callable[[Web], RawClient]
) -> None:
    client = connect(web)
    client.send(BODY_NEVER_COMES)

    def is_hung_up_on() -> bool:
        try:
            client.send(" ")
        except OSError:
            return True
        return False

    wait_until(is_hung_up_on, seconds=15, what="the end of its time", every=0.2)


def test_a_body_in_chunks_is_read_like_any_other(web: Web) -> None:
    product = a_product()
    body = json.dumps(cart_of(product)).encode()

    answer = checkout(web, product, data=iter([body[:10], body[10:]]))

    assert answer.status_code == 201, answer.text
    assert Order.objects.filter(pk=answer.json()["order_id"]).exists()


@pytest.mark.parametrize("beginning", ["\r\n", "GET /v1/products HTTP/1.1\r\nHost: 127"])
def test_a_request_is_answered_whatever_comes_right_behind_it(
    beginning: str, web: Web, connect: Callable[[Web], RawClient]
) -> None:
    client = connect(web)
    client.send(f"{checkout_text(a_product())}{beginning}")

    assert client.answer().startswith("HTTP/1.1 201 ")


def test_a_request_that_takes_long_is_answered_although_the_next_one_is_late(
    web: Web, connect: Callable[[Web], RawClient], locked: Product
) -> None:
    client = connect(web)
    client.send(f"{checkout_text(locked)}{HEADERS_NEVER_END}")

    assert client.answer().startswith("HTTP/1.1 503 ")


@pytest.mark.parametrize("in_chunks", [False, True])
@pytest.mark.parametrize(
    ("path", "kilobytes"),
    [
        *product(["/v1/checkout", "/admin/login/"], [300, 900, 5_000]),
        *product(["/v1/webhooks/midtrans"], [2_100, 5_000]),
    ],
)
def test_a_body_that_is_too_large_is_a_problem_that_says_so(
    path: str, kilobytes: int, in_chunks: bool, web: Web
) -> None:
    body = b"x" * 1024
    pieces = (body for _ in range(kilobytes))

    answer = web.post(
        path,
        data=pieces if in_chunks else body * kilobytes,
        headers={"Content-Type": "application/json", "Idempotency-Key": "k"},
    )

    assert answer.status_code == 413
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["status"] == 413


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("NOT HTTP\r\n\r\n", 400),
        ("GET /v1/products HTTP/9.9\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        ("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n", 400),
        (
            "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            400,
        ),
        (f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: {'x' * 40_000}\r\n\r\n", 431),
        (f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {'9' * 5_000}\r\n\r\n", 400),
        ("GET http://[::1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
        (f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n{CHUNKED}", 400),
        (f"POST / HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\n{CHUNKED}", 400),
    ],
)
def test_what_cannot_be_read_is_a_problem_and_a_line_without_its_words(
    text: str, status: int, web: Web, connect: Callable[[Web], RawClient]
) -> None:
    client = connect(web)
    client.send(text)

    answer = client.answer()
    head, _, body = answer.partition("\r\n\r\n")

    assert head.startswith((f"HTTP/1.1 {status} ", f"HTTP/1.0 {status} "))
    assert answer.count("HTTP/1.") == 1
    assert "application/problem+json" in head
    assert json.loads(body)["status"] == status
    assert '"request_unreadable"' in web.log.read_text()
    assert "NOT HTTP" not in web.log.read_text()
    assert '"level":"error"' not in web.log.read_text()


@pytest.mark.parametrize("path", ["/nothing", "/v1/nothing", "/v1/products", "/admin/login/"])
@pytest.mark.parametrize("host", ["127.0.0.1", "evil.example"])
def test_an_answer_to_head_has_no_body_that_the_next_client_would_get(
    path: str, host: str, web: Web, connect: Callable[[Web], RawClient]
) -> None:
    client = connect(web)
    client.send(f"HEAD {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
    client.send("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")

    head, _, rest = client.answer().partition("\r\n\r\n")

    if "\r\nconnection: close" in head.lower():
        assert rest == ""
    else:
        assert rest.startswith("HTTP/1.1 200 OK\r\n")


@pytest.fixture
def locked(test_database_url: str) -> Iterator[Product]:
    """A product whose row a session has locked that hangs."""
    product = a_product(stocked=100)
    with psycopg.connect(test_database_url) as hung:
        hung.execute("SELECT 1 FROM orders_product WHERE id = %s FOR UPDATE", [product.pk])
        yield product


def test_checkouts_of_a_locked_product_stop_nothing_else(web: Web, locked: Product) -> None:
    def others() -> list[int]:
        paths = ("/healthz", "/readyz", "/v1/products", "/admin/login/")
        statuses = [web.get(path).status_code for path in paths]
        return [*statuses, web.post("/v1/webhooks/xendit", json={}).status_code]

    *checkouts, beside = together([lambda: checkout(web, locked)] * 8 + [others])

    assert beside == [200, 200, 200, 200, 403]
    assert {answer.status_code for answer in checkouts} == {503}
    for answer in checkouts:
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert int(answer.headers["Retry-After"]) > 0


def connections_of(process: psutil.Process, port: int) -> int:
    """Return how many clients' connections the process holds."""
    held = process.net_connections(kind="tcp4")
    return sum(one.status == psutil.CONN_ESTABLISHED and one.laddr.port == port for one in held)


def test_a_process_whose_requests_wait_leaves_new_connections_to_another(
    start_web: StartWeb, connect: Callable[[Web], RawClient], locked: Product
) -> None:
    # The checkouts wait until the test ends; one that is given up ends its connection.
    web = start_web(processes=2, patient=True)
    full, free = psutil.Process(web.process.pid).children()
    wait_until(
        lambda: min(full.num_threads(), free.num_threads()) > 6, seconds=30, what="both processes"
    )
    free.suspend()
    for _ in range(8):
        connect(web).send(checkout_text(locked))
    wait_until(lambda: connections_of(full, web.port) == 8, seconds=10, what="its connections")

    free.resume()

    def held() -> int:
        return connections_of(full, web.port) + connections_of(free, web.port)

    for count in range(9, 69):
        connect(web)
        wait_until(lambda count=count: held() == count, seconds=10, what="the next connection")
    assert connections_of(free, web.port) > 30


def test_connections_that_nobody_wants_are_taken_faster_and_faster() -> None:
    full = SimpleNamespace(are_full=True)
    connections: dict[int, wasyncore.dispatcher] = {}
    with ExitStack() as sockets:
        listening = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=200))
        server = Server(
            lambda environ, start: [],
            map=connections,
            _sock=listening,
            dispatcher=full,
            sockinfo=(listening.family, None, None, None),
            bind_socket=False,
        )
        sockets.callback(wasyncore.close_all, connections)

        def crowd(size: int) -> None:
            for _ in range(size):
                sockets.enter_context(socket.create_connection(listening.getsockname()))

        def look(at: float) -> int:
            before = len(server.active_channels)
            server.look(at)
            return len(server.active_channels) - before

        crowd(80)
        assert not server.readable()
        assert [look(at) for at in (1.0, 1.001, 2.0, 3.0, 4.0)] == [1, 0, 2, 4, 8]
        assert [look(at) for at in (5.0, 6.0, 7.0, 8.0)] == [16, 32, 17, 0]
        crowd(3)
        assert [look(at) for at in (9.0, 10.0)] == [1, 2]

        crowd(20)
        assert [look(at) for at in (11.0, 12.0)] == [4, 8]
        full.are_full = False
        look(13.0)
        full.are_full = True
        assert [look(at) for at in (14.0, 15.0)] == [1, 2]


def test_a_request_that_is_being_sent_at_the_end_is_answered(
    start_web: StartWeb, connect: Callable[[Web], RawClient]
) -> None:
    web = start_web(patient=True)
    client = connect(web)
    client.send("GET /v1/products HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    with requests.Session() as kept:

        def hangs_up() -> bool:
            answer = kept.get(web.url("/v1/products"), timeout=20)
            return answer.headers.get("Connection") == "close"

        assert not hangs_up()  # and the connection before it was accepted

        os.kill(web.process.pid, signal.SIGTERM)
        wait_until(hangs_up, seconds=20, what="its process to end")
    client.send("\r\n")

    head = client.answer().partition("\r\n\r\n")[0]
    assert head.startswith("HTTP/1.1 200 ")
    assert "Connection: close" in head
    wait_until(lambda: not web.process.running, seconds=20, what="the end")
    assert web.process.stop() == 0


def test_a_request_on_a_connection_that_is_taken_at_the_end_is_answered(
    start_web: StartWeb, connect: Callable[[Web], RawClient]
) -> None:
    web = start_web()
    [process] = psutil.Process(web.process.pid).children()
    process.suspend()
    client = connect(web)
    client.send("GET /v1/products HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    process.terminate()

    process.resume()

    assert client.answer().startswith("HTTP/1.1 200 ")


def test_it_also_listens_on_a_socket_in_the_file_system(start_web: StartWeb) -> None:
    # Its path may have a hundred characters, which those of pytest's folders may exceed.
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as client:
        start_web(also=f"unix:{folder}/web.sock")
        client.connect(f"{folder}/web.sock")
        client.settimeout(20)
        client.sendall(b"GET /v1/products HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")


def test_more_clients_than_it_has_descriptors_for_wait_to_be_accepted(
    start_web: StartWeb, connect: Callable[[Web], RawClient]
) -> None:
    web = start_web(descriptors=128)
    [process] = psutil.Process(web.process.pid).children()
    clients = [connect(web) for _ in range(200)]
    wait_until(lambda: "connection limit" in web.log.read_text(), seconds=10, what="the limit")

    assert connections_of(process, web.port) < 64
    for client in clients:
        client.close()
    assert web.get("/readyz").ok
    assert "accept() threw" not in web.log.read_text()


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--certfile={certificate}", "leave --certfile out"),
        ("--max-requests=1000", "leave --max-requests out"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    option: str, sentence: str, tmp_path: Path
) -> None:
    certificate = tmp_path / "certificate.pem"
    certificate.touch()
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "gunicorn",
            "skincare.wsgi",
            option.format(certificate=certificate),
            f"--bind=127.0.0.1:{free_port()}",
        ],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.integration.web.settings"},
        capture_output=True,
        text=True,
        timeout=60 * busyness(),
        check=False,
    )

    assert ended.returncode not in (0, None)
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr
