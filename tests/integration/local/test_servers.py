"""The local PostgreSQL and SQS servers: who can reach them, and that nothing of them stays."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import psutil
import psycopg
import pytest

from skincare.local import postgres
from skincare.local.deadline import wait_until
from skincare.local.postgres import PostgresServer, database, reachable_binaries
from skincare.local.sqs import CLIENT_ENVIRONMENT, SQSServer, server_environment, sqs_endpoint
from skincare.local.unprivileged import User, private_folder, unprivileged_user
from tests.processes import runs

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as another user")

PARENT = """
import time
from skincare.local.postgres import PostgresServer
from skincare.local.sqs import SQSServer
for server in [PostgresServer(), SQSServer()]:
    print(server.folder, server.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        yield running


@pytest.fixture(scope="module")
def sqs() -> Iterator[SQSServer]:
    with SQSServer() as running:
        yield running


def family(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def listeners(pid: int) -> list[object]:
    """Where a process and its children listen: (address, port) or the path of a UNIX socket."""
    return [
        connection.laddr
        for process in family(pid)
        for connection in process.net_connections("all")
        if connection.status == psutil.CONN_LISTEN
        or (connection.family == socket.AF_UNIX and connection.laddr)
    ]


def modes_upwards(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mode for path in (folder, *folder.parents)}


def test_sigkill_of_the_parent_leaves_no_process_and_no_folder() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    started = [parent.stdout.readline().split() for _ in range(2)]
    folders = [Path(folder) for folder, _ in started]
    processes = [process for _, pid in started for process in family(int(pid))]
    assert len(processes) > 5
    assert all(folder.is_dir() for folder in folders)

    parent.kill()
    parent.wait()
    parent.stdout.close()

    wait_until(
        lambda: not any(folder.exists() for folder in folders), seconds=10, what="the folders to go"
    )
    # PostgreSQL's own processes see that theirs is gone, and end by themselves.
    wait_until(lambda: not any(map(runs, processes)), seconds=10, what="all their processes to end")


def test_stop_leaves_no_process_and_no_folder() -> None:
    for running in (PostgresServer(), SQSServer()):
        processes = family(running.pid)
        running.stop()
        assert not running.folder.exists()
        assert [process for process in processes if runs(process)] == []


def test_postgres_listens_on_no_port_and_its_folder_is_private(server: PostgresServer) -> None:
    assert set(listeners(server.pid)) == {str(server.folder / ".s.PGSQL.5432")}
    assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700


def test_sqs_listens_on_loopback_only(sqs: SQSServer) -> None:
    assert set(listeners(sqs.pid)) == {("127.0.0.1", sqs.port)}


def test_sqs_gets_nothing_of_our_environment() -> None:
    assert "AWS_SECRET_ACCESS_KEY" in os.environ
    with SQSServer() as running:
        environment = psutil.Process(running.pid).environ()
    environment.pop("LC_CTYPE", None)  # Python's own (PEP 538)
    assert environment == server_environment(running.port, running.folder)


def test_sqs_reset_forgets_the_queues(sqs: SQSServer) -> None:
    client = boto3.client(
        "sqs",
        endpoint_url=sqs.endpoint_url,
        region_name=CLIENT_ENVIRONMENT["AWS_REGION"],
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )
    url = client.create_queue(QueueName="orders")["QueueUrl"]
    assert url.startswith(sqs.endpoint_url)
    assert client.list_queues()["QueueUrls"] == [url]
    sqs.reset()
    assert client.list_queues().get("QueueUrls", []) == []
    client.close()


@pytest.mark.parametrize("crash", [False, True])
def test_a_committed_row_survives_a_restart(server: PostgresServer, crash: bool) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS value")
    before = server.pid
    try:
        server.restart(crash=crash)
        assert server.pid != before
        with psycopg.connect(server.url) as connection:
            assert connection.execute("SELECT value FROM kept").fetchall() == [(1,)]
    finally:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("DROP TABLE kept")


def others(connection: psycopg.Connection[Any]) -> int:
    """How many other sessions the server has."""
    found = connection.execute(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    return int(found.fetchall()[0][0])


def test_terminate_backends_cuts_every_client(server: PostgresServer) -> None:
    first, second = (psycopg.connect(server.url, autocommit=True) for _ in range(2))
    with first, second:
        # What an earlier test has closed is there for a moment.
        wait_until(lambda: others(first) == 1, seconds=10, what="no sessions but these two")
        assert server.terminate_backends() == 2
        for connection in (first, second):
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")


def test_a_database_that_is_away_cuts_and_refuses_every_client(server: PostgresServer) -> None:
    with psycopg.connect(server.url) as cut, server.away():
        with pytest.raises(psycopg.OperationalError):
            cut.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError, match="not currently accepting"):
            psycopg.connect(server.url)
    psycopg.connect(server.url).close()


def test_a_failover_makes_readers_of_the_open_sessions_only(server: PostgresServer) -> None:
    def is_reader(connection: psycopg.Connection[Any]) -> bool:
        return connection.execute("SHOW transaction_read_only").fetchone() == ("on",)

    with psycopg.connect(server.url, autocommit=True) as old:
        for _ in range(2):
            with server.failed_over():
                wait_until(lambda: is_reader(old), seconds=10, what="the old session to know")
                with psycopg.connect(server.url, autocommit=True) as new:
                    assert not is_reader(new)
            wait_until(lambda: not is_reader(old), seconds=10, what="a writer again")


def test_a_server_given_in_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://db.example/shop")
    monkeypatch.setenv("SQS_ENDPOINT_URL", "http://sqs.example:9324")
    with database() as url, sqs_endpoint() as endpoint:
        assert url == "postgresql://db.example/shop"
        assert endpoint == "http://sqs.example:9324"


@as_root
def test_as_root_postgres_runs_as_another_user_and_changes_no_folder_above(
    server: PostgresServer,
) -> None:
    assert {process.uids().real for process in family(server.pid)} == {unprivileged_user().uid}  # type: ignore[union-attr]
    binaries = reachable_binaries(None, copy_to=Path("/nowhere"))
    before = modes_upwards(binaries) | modes_upwards(server.folder.parent)
    with PostgresServer():
        assert modes_upwards(binaries) | modes_upwards(server.folder.parent) == before


@as_root
def test_programs_that_the_user_cannot_reach_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a virtual environment below /root, whose mode is 0700."""
    monkeypatch.setattr(
        User, "can_read_below", lambda _, folder: "site-packages" not in str(folder)
    )
    with PostgresServer() as running:
        program = Path(psutil.Process(running.pid).exe())
        assert program.is_relative_to(running.folder)
        with psycopg.connect(running.url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    assert not running.folder.exists()


@as_root
def test_a_temporary_folder_that_the_user_cannot_enter_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o700)
    monkeypatch.setattr("tempfile.tempdir", str(locked))
    folder = private_folder("skincare-test-", unprivileged_user())
    try:
        assert not folder.is_relative_to(locked)
        assert list(locked.iterdir()) == []
        assert stat.S_IMODE(locked.stat().st_mode) == 0o700
    finally:
        folder.rmdir()


def test_failing_to_initialise_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def refuse(_: Path, data: Path, __: User | None) -> None:
        made.append(data.parent)
        raise subprocess.CalledProcessError(1, "initdb")

    monkeypatch.setattr(postgres, "initialise", refuse)
    with pytest.raises(subprocess.CalledProcessError):
        PostgresServer()
    assert len(made) == 1
    assert not made[0].exists()
