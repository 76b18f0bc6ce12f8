"""The database's certificate is checked for real: by the settings of production, over a socket."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import psycopg
import pytest
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import ConnectionHandler

from skincare.connections import database
from skincare.environment import Environment
from skincare.operations import deployment_checks

pytestmark = pytest.mark.django_db

BUNDLE = Path(__file__).resolve().parents[2] / "docker" / "rds-ca-bundle.pem"

KINDS = ("RSA2048", "RSA4096", "ECC384")
#: A connection that asks for TLS begins with this, and the server says S for yes.
#: https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-SSL
SSL_REQUEST = bytes.fromhex("0000000804d2162f")


class TLSServer:
    """Ends TLS with a certificate for `db.example`, and hands all on to the test's PostgreSQL."""

    def __init__(self, folder: Path, backend: tuple[int, str | tuple[str, int]]) -> None:
        self.certificate = folder / "server.pem"
        key = folder / "server.key"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
                *("-subj", "/CN=db.example", "-addext", "subjectAltName=DNS:db.example"),
                *("-keyout", str(key), "-out", str(self.certificate)),
            ],
            check=True,
            capture_output=True,
        )
        self._backend = backend
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(self.certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            if client.recv(8) != SSL_REQUEST:
                return
            client.sendall(b"S")
            family, address = self._backend
            with (
                self._tls.wrap_socket(client, server_side=True) as near,
                socket.socket(family) as far,
            ):
                far.connect(address)
                answers = threading.Thread(target=pump, args=(far, near), daemon=True)
                answers.start()
                pump(near, far)
                answers.join()


def pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def server(tmp_path: Path, database_url: str) -> Iterator[TLSServer]:
    info = psycopg.conninfo.conninfo_to_dict(database_url)
    host, port = str(info["host"]), int(info.get("port") or 5432)
    backend: tuple[int, str | tuple[str, int]] = (socket.AF_INET, (host, port))
    if host.startswith("/"):
        backend = (socket.AF_UNIX, f"{host}/.s.PGSQL.{port}")
    with TLSServer(tmp_path, backend) as running:
        yield running


@pytest.fixture
def opened(
    server: TLSServer, test_database_url: str
) -> Iterator[Callable[..., BaseDatabaseWrapper]]:
    """Open a connection as production's settings make it, with these changes."""
    info = psycopg.conninfo.conninfo_to_dict(test_database_url)
    all_opened: list[BaseDatabaseWrapper] = []

    def open_one(
        *,
        name: str = "db.example",
        ca: Path = server.certificate,
        in_production: bool = True,
        query: str = "",
    ) -> BaseDatabaseWrapper:
        url = f"postgresql://{info['user']}@{name}:{server.port}/{info['dbname']}"
        given = {"DATABASE_URL": f"{url}{query}", "DATABASE_CA_BUNDLE": str(ca)}
        settings = database(
            Environment(given), default_url="", ca_bundle=BUNDLE, in_production=in_production
        )
        settings["OPTIONS"]["hostaddr"] = "127.0.0.1"  # what the name would resolve to
        connection = ConnectionHandler({"default": settings})["default"]
        all_opened.append(connection)
        connection.ensure_connection()
        return connection

    yield open_one
    for connection in all_opened:
        connection.close()


def test_the_servers_own_certificate_is_taken_and_preflight_says_what_was_negotiated(
    opened: Callable[..., BaseDatabaseWrapper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment_checks, "connection", opened())

    assert str(deployment_checks._database_tls()) == (
        "database TLS: OK, the certificate is db.example's; "
        "PostgreSQL itself sees none, behind a pooler"
    )


def test_another_servers_certificate_is_refused(opened: Callable[..., BaseDatabaseWrapper]) -> None:
    with pytest.raises(OperationalError, match="does not match host name"):
        opened(name="other.example")


def test_a_certificate_of_an_unknown_authority_is_refused(
    opened: Callable[..., BaseDatabaseWrapper],
) -> None:
    with pytest.raises(OperationalError, match="certificate verify failed"):
        opened(ca=BUNDLE)


def test_preflight_names_a_connection_that_anybody_could_be_at_the_end_of(
    opened: Callable[..., BaseDatabaseWrapper], monkeypatch: pytest.MonkeyPatch
) -> None:
    weak = opened(in_production=False, query="?sslmode=require")
    monkeypatch.setattr(deployment_checks, "connection", weak)

    assert deployment_checks._database_tls().problem.startswith(
        "encrypted, but the certificate of db.example is unchecked."
    )


def test_the_bundle_holds_the_authorities_of_every_region() -> None:
    context = ssl.create_default_context(cafile=BUNDLE)
    names = {
        value
        for authority in context.get_ca_certs()
        for pairs in authority["subject"]
        for key, value in pairs
        if key == "commonName"
    }

    assert {f"Amazon RDS ap-southeast-3 Root CA {kind} G1" for kind in KINDS} <= names
    assert len({name for name in names if name.startswith("Amazon RDS ")}) > 80
