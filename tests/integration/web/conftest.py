"""A real gunicorn, and raw connections to it."""

import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, Self

import pytest
import requests

from skincare.local.sqs import free_port
from skincare.local.supervised import Supervised


class Web:
    """The API, as gunicorn.conf.py serves it."""

    def __init__(
        self,
        environment: dict[str, str],
        folder: Path,
        *,
        processes: int = 1,
        also: str = "",
        descriptors: int | None = None,
    ) -> None:
        limit = ("sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh") if descriptors else ()
        self.port = free_port()
        self.log = folder / "web.log"
        self.process = Supervised(
            [
                *limit,
                *(sys.executable, "-m", "gunicorn", "skincare.wsgi"),
                *("--workers", str(processes), "--bind", f"127.0.0.1:{self.port}"),
                *(("--bind", also) if also else ()),
            ],
            name="the API",
            env=environment,
            log=self.log,
            grace=40,
        )

    def __enter__(self) -> Self:
        self.process.wait_ready(self._answers, seconds=60)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()

    def _answers(self) -> bool:
        try:
            return self.get("/healthz").ok
        except requests.RequestException:
            return False

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def get(self, path: str, **options: Any) -> requests.Response:
        return requests.get(self.url(path), timeout=20, **options)

    def post(self, path: str, **options: Any) -> requests.Response:
        return requests.post(self.url(path), timeout=20, **options)


class RawClient:
    """A connection that says what it wants, at its own pace."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)

    def send(self, text: str) -> None:
        self._socket.sendall(text.encode())

    def answer(self) -> str:
        """Return all that comes until the server hangs up; empty where it only does that."""
        received = b""
        try:
            while data := self._socket.recv(65_536):
                received += data
        except ConnectionResetError:
            pass
        return received.decode()

    def close(self) -> None:
        self._socket.close()


class StartWeb(Protocol):
    """Starts another gunicorn, until the end of the module.

    also: what else it listens on. descriptors: how many files and connections each of its processes
    may open. patient: no deadline ends what the test looks at.
    """

    def __call__(
        self,
        *,
        processes: int = 1,
        also: str = "",
        descriptors: int | None = None,
        patient: bool = False,
    ) -> Web: ...


@pytest.fixture(scope="module")
def start_web(
    test_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartWeb]:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.integration.web.settings",
        "DATABASE_URL": test_database_url,
        "LOG_LEVEL": "INFO",
    }
    with ExitStack() as running:

        def start(*, patient: bool = False, **how: Any) -> Web:
            folder = tmp_path_factory.mktemp("web")
            given = environment | ({"PATIENT": "true"} if patient else {})
            return running.enter_context(Web(given, folder, **how))

        yield start


@pytest.fixture(scope="module")
def web(start_web: StartWeb) -> Web:
    return start_web()


@pytest.fixture
def connect() -> Iterator[Callable[[Web], RawClient]]:
    """Open a connection that is closed after the test."""
    clients: list[RawClient] = []

    def one(web: Web) -> RawClient:
        clients.append(RawClient(web.port))
        return clients[-1]

    yield one
    for client in clients:
        client.close()
