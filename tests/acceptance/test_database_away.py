"""The worker while PostgreSQL refuses connections: events wait with it, and no receive is spent."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from orders import catalogue
from skincare.events.models import ProcessedEvent
from skincare.local.deadline import wait_until
from skincare.local.sqs import free_port
from skincare.sqs.queues import depth
from tests.acceptance.conftest import Shop, Stage

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

pytestmark = pytest.mark.django_db(transaction=True)


class Gate:
    """A TCP port that leads to the test's PostgreSQL, as long as it is open."""

    def __init__(self) -> None:
        self._listener: socket.socket | None = None
        self._open: list[socket.socket] = []
        self.port = free_port()  # no outgoing connection is given it while it is closed
        self.open()

    def open(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=[self._listener], daemon=True).start()

    def close(self) -> None:
        """Refuse new connections and cut the others."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = _connect()
                self._open += [client, server]
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=_copy, args=[source, target], daemon=True).start()


def _connect() -> socket.socket:
    host = connection.settings_dict["HOST"] or connection.settings_dict["OPTIONS"]["host"]
    port = int(connection.settings_dict["PORT"] or 5432)
    if not host.startswith("/"):
        return socket.create_connection((host, port))
    server = socket.socket(socket.AF_UNIX)
    server.connect(f"{host}/.s.PGSQL.{port}")
    return server


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65_536):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def gate() -> Iterator[Gate]:
    opened = Gate()
    try:
        yield opened
    finally:
        opened.close()


def test_an_outage_of_the_database_costs_no_receive_and_no_dead_letter(
    set_up: Callable[..., AbstractContextManager[Stage]],
    sqs_client: "SQSClient",
    tmp_path: Path,
) -> None:
    catalogue.seed()
    database = connection.settings_dict
    with gate() as way:
        url = f"postgresql://{database['USER']}@127.0.0.1:{way.port}/{database['NAME']}"
        with set_up(tmp_path, 1, DATABASE_URL=url) as stage:
            shop = Shop(stage.app, sqs_client, stage.queues, stage.folder)
            paid = [shop.paid_order() for _ in range(20)]
            way.close()
            for one in paid:
                shop.deliver(one.event)

            # More tries than a message has receives; with its first receive it was not over.
            wait_until(
                lambda: len(tries(tmp_path)) > 12, seconds=60, what="the worker to try and fail"
            )
            assert depth(sqs_client, stage.queues.dlq_url).visible == 0
            way.open()

            for one in paid:
                shop.wait_for_status(one.event, "done", seconds=60)
            shop.wait_for_empty_queue()
            assert shop.in_dlq() == []
            assert max(ProcessedEvent.objects.values_list("receive_count", flat=True)) <= 2
            assert len(shop.emails()) == 20


def tries(folder: Path) -> list[str]:
    return re.findall(r"database_away", (folder / "w0.log").read_text(errors="replace"))
