"""`/readyz` answers within a second whatever the database does; `/healthz` asks nobody."""

import socket
import time
from collections.abc import Iterator

import pytest
from django.conf import LazySettings
from django.db import connections
from django.test import Client

from skincare.local.deadline import busyness
from skincare.telemetry.readiness import BoundedCheck, ask_database
from tests.log_lines import captured


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(autouse=True)
def fresh_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """No check of another test is still under way."""
    monkeypatch.setattr("skincare.telemetry.health.database_check", BoundedCheck(ask_database))


@pytest.mark.django_db(transaction=True)
def test_a_database_that_answers_is_ready() -> None:
    assert Client().get("/readyz").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_database_that_hangs_is_not_ready_and_the_answer_comes_in_time(
    silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections.settings["default"], "HOST", "127.0.0.1")
    monkeypatch.setitem(connections.settings["default"], "PORT", silent_port)

    for _ in range(2):
        started = time.monotonic()
        with captured() as lines:
            response = Client().get("/readyz")

        assert (response.status_code, response.json()) == (
            *(503, {"status": "database unreachable"}),
        )
        assert 0.9 < time.monotonic() - started < 2 * busyness()
        assert [line["event"] for line in lines.of("readyz_failed")] == ["readyz_failed"]


@pytest.mark.django_db(transaction=True)
def test_a_database_that_refuses_is_not_ready_at_once(
    silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setitem(connections.settings["default"], "HOST", "127.0.0.1")
        monkeypatch.setitem(connections.settings["default"], "PORT", closed.getsockname()[1])

        started = time.monotonic()
        assert Client().get("/readyz").status_code == 503
        assert time.monotonic() - started < 0.9 * busyness()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_load_balancer_calls_by_address_and_in_plain_http(
    path: str, settings: LazySettings
) -> None:
    settings.ALLOWED_HOSTS = ["shop.example"]
    settings.SECURE_SSL_REDIRECT = True
    client = Client(headers={"Host": "10.0.0.5:8000"})

    assert client.get(path).status_code == 200
    assert client.get("/v1/products").status_code == 400


def test_a_process_that_lives_is_healthy_without_a_database() -> None:
    response = Client().get("/healthz")

    assert (response.status_code, response.json()) == (200, {"status": "ok"})
