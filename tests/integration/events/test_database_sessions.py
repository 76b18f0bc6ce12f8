"""Sessions of a real PostgreSQL, and of a real PgBouncer before it: limits, readers, outages."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import (
    DataError,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
    close_old_connections,
    connection,
    connections,
    transaction,
)
from django.test import Client
from django.utils import timezone

from skincare.events.claim import Claim, claim
from skincare.events.consumer import EventOutcome, process
from skincare.events.database_sessions import (
    PREPARE_AFTER,
    LimitedTransactions,
    is_away,
    limits_in_force,
    limits_of,
    prepare_session,
    socket_options_in_force,
)
from skincare.events.models import ProcessedEvent
from skincare.local.sqs import free_port
from skincare.local.supervised import Supervised
from skincare.local.unprivileged import private_folder, unprivileged_user
from skincare.operations.deployment_checks import _limits
from skincare.sqs.outcome import Unavailable
from skincare.telemetry.readiness import BoundedCheck, ask_database
from tests.integration.events.event_documents import event_document, new_event

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_session_of_another_test() -> Iterator[None]:
    connection.close()
    yield
    connection.close()


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


@contextmanager
def failover() -> Iterator[None]:
    """The sessions that are open are on a reader now; new ones are on a writer."""
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    yield


@contextmanager
def only_readers() -> Iterator[None]:
    """Every new session is on a reader."""
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    connection.close()
    try:
        yield
    finally:
        connection.close()
        with psycopg.connect(
            **{
                **connection.get_connection_params(),
                "dbname": "postgres",
                "target_session_attrs": "any",
                "context": None,
                "cursor_factory": None,
            },
            autocommit=True,
        ) as direct:
            direct.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')


def test_a_session_that_has_become_a_reader_is_replaced_before_the_next_request() -> None:
    with failover():
        reader = backend()
        with pytest.raises(InternalError):
            claim(new_event(), worker="w1")

        close_old_connections()  # as at the start of a request, of an event, and of a relay's pass

        assert isinstance(claim(new_event(), worker="w1"), Claim)
        assert backend() != reader


def test_a_session_that_works_is_kept() -> None:
    first = backend()

    close_old_connections()

    assert backend() == first


def test_readyz_says_at_once_that_there_is_only_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skincare.telemetry.health.database_check", BoundedCheck(ask_database))
    assert Client().get("/readyz").status_code == 200

    with only_readers():
        assert Client().get("/readyz").status_code == 503

    assert Client().get("/readyz").status_code == 200


@pytest.mark.parametrize("away", ["reader", "refused"])
def test_without_a_database_an_event_waits_with_its_worker(
    away: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = event_document(event_type="test.unknown")
    with monkeypatch.context() as patch, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        if away == "refused":
            patch.setitem(connections.settings["default"], "PORT", closed.getsockname()[1])
            patch.setitem(connection.settings_dict, "PORT", closed.getsockname()[1])
        else:
            with connection.cursor() as cursor:
                cursor.execute("SET default_transaction_read_only = on")
        with pytest.raises(Unavailable, match="PostgreSQL"):
            process(document, receive_count=1, worker="w1")

    # In place, by the same worker, on a new session.
    assert process(document, receive_count=1, worker="w1") is EventOutcome.SKIPPED
    assert ProcessedEvent.objects.get().attempts == 1


def with_cause(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (OperationalError("server closed the connection unexpectedly"), True),
        (InterfaceError("the connection is closed"), True),
        (with_cause(OperationalError(), psycopg.errors.AdminShutdown()), True),
        (with_cause(OperationalError(), psycopg.errors.CannotConnectNow()), True),
        (with_cause(OperationalError(), psycopg.errors.TooManyConnections()), True),
        (with_cause(OperationalError(), psycopg.errors.ProtocolViolation()), True),
        (with_cause(InternalError(), psycopg.errors.ReadOnlySqlTransaction()), True),
        (with_cause(OperationalError(), psycopg.errors.LockNotAvailable()), False),
        (with_cause(OperationalError(), psycopg.errors.QueryCanceled()), False),
        (with_cause(OperationalError(), psycopg.errors.DeadlockDetected()), False),
        (with_cause(IntegrityError(), psycopg.errors.UniqueViolation()), False),
        (DataError("out of range"), False),
        (ValueError("no such payment"), False),
    ],
)
def test_what_says_that_the_database_is_away(error: Exception, away: bool) -> None:
    assert is_away(error) is away


@pytest.mark.parametrize("service", ["api", "worker", "relay"])
def test_a_session_has_the_limits_of_its_service(service: str) -> None:
    connection.ensure_connection()

    prepare_session(connection=connection, service=service)

    assert limits_in_force(limits_of(service)) == limits_of(service)
    assert set(limits_of(service)) == {
        "idle_in_transaction_session_timeout",
        "lock_timeout",
        "statement_timeout",
    }


def test_a_command_may_take_as_long_as_it_needs() -> None:
    assert limits_in_force(["statement_timeout", "lock_timeout"]) == {
        "statement_timeout": "0ms",
        "lock_timeout": "0ms",
    }
    assert limits_in_force(limits_of("manage")) == limits_of("manage")


@pytest.fixture
def pgbouncer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Django's connection goes through a PgBouncer in transaction mode, with one server session."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("NOT TESTED: no pgbouncer here (Debian: apt-get install pgbouncer)")
    wanted = connection.get_connection_params()
    host, user = wanted.get("host", ""), wanted.get("user", "")
    port = free_port()
    # It refuses to run as root, and must reach the server's socket: it runs as the server does.
    owner = unprivileged_user()
    folder = private_folder("skincare-pgbouncer-", owner)
    users, log, ini = folder / "users.txt", folder / "pgbouncer.log", folder / "pgbouncer.ini"
    users.write_text(f'"{user}" "{wanted.get("password", "")}"\n')
    server = f"host={host or '127.0.0.1'} port={wanted.get('port') or 5432}"
    ini.write_text(
        f"[databases]\n* = {server}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {users}\npool_mode = transaction\n"
        f"default_pool_size = 1\nlogfile = {log}\n"
    )
    if owner is not None:
        for path in folder.iterdir():
            os.chown(path, owner.uid, owner.gid)
    process = Supervised([program, str(ini)], name="PgBouncer", user=owner, remove=folder)
    try:
        process.wait_listening(port)
        with monkeypatch.context() as patch:
            for name, value in {"HOST": "127.0.0.1", "PORT": port}.items():
                patch.setitem(connection.settings_dict, name, value)
            connection.close()
            yield
            connection.close()
    finally:
        process.stop()


def test_a_pooler_in_transaction_mode_has_the_limits_in_every_transaction(pgbouncer: None) -> None:
    connection.ensure_connection()
    prepare_session(connection=connection, service="api")
    assert [type(one) for one in connection.execute_wrappers] == [LimitedTransactions]

    for _ in range(2):
        with transaction.atomic():
            assert limits_in_force(limits_of("api")) == limits_of("api")
            with transaction.atomic():
                assert limits_in_force(limits_of("api")) == limits_of("api")


def test_a_statement_outside_of_a_transaction_has_the_limits_too(pgbouncer: None) -> None:
    connection.ensure_connection()
    prepare_session(connection=connection, service="api")

    assert limits_in_force(limits_of("api")) == limits_of("api")
    assert connection.get_autocommit()
    assert not connection.in_atomic_block
    with pytest.raises(OperationalError, match="statement timeout"), connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(10)")
    # Nothing of it stays on, neither here nor for the next client.
    assert ProcessedEvent.objects.count() == 0
    ProcessedEvent.objects.create(event_id="kept", payload={}, created_at=timezone.now())
    connection.close()
    assert ProcessedEvent.objects.count() == 1


def test_a_command_may_do_through_a_pooler_what_no_transaction_may(pgbouncer: None) -> None:
    connection.ensure_connection()
    prepare_session(connection=connection, service="manage")

    with connection.cursor() as cursor:
        cursor.execute("CREATE INDEX CONCURRENTLY of_a_test ON events_processedevent (worker)")
        cursor.execute("DROP INDEX CONCURRENTLY of_a_test")


def test_what_a_client_sets_reaches_no_other_client_of_the_pooler(pgbouncer: None) -> None:
    connection.ensure_connection()
    prepare_session(connection=connection, service="api")
    with transaction.atomic():
        ProcessedEvent.objects.count()

    connection.close()  # and the next client gets the pooler's one session

    assert limits_in_force(["statement_timeout"]) == {"statement_timeout": "0ms"}


def test_events_are_processed_through_a_pooler(pgbouncer: None) -> None:
    document = event_document(event_type="test.unknown")

    outcomes = [process(document, receive_count=1, worker="w1") for _ in range(2)]

    assert outcomes == [EventOutcome.SKIPPED, EventOutcome.DUPLICATE]


def prepared() -> list[str]:
    """What this session has prepared."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        return [statement for (statement,) in cursor.fetchall()]


def test_what_comes_with_each_event_is_prepared_once_for_a_session() -> None:
    for _ in range(PREPARE_AFTER + 3):
        claim(new_event(), worker="w1")

    assert len([statement for statement in prepared() if "WITH claimed" in statement]) == 1


@pytest.mark.parametrize("meddling", ["DISCARD ALL", "PREPARE"])
def test_an_event_is_tried_in_place_whose_session_was_given_to_others_meanwhile(
    meddling: str,
) -> None:
    """Something between us and PostgreSQL that is a pooler, and does not look like one."""
    for _ in range(PREPARE_AFTER + 3 if meddling == "DISCARD ALL" else PREPARE_AFTER):
        claim(new_event(), worker="w1")
    behind = connection.connection.pgconn
    if meddling == "PREPARE":  # what the next one is to be called
        behind.exec_(b"PREPARE _pg3_0 AS SELECT 1")
    else:
        behind.exec_(b"DISCARD ALL")
    document = new_event(event_type="order.seen").document()

    with pytest.raises(Unavailable) as away:
        process(document, receive_count=1, worker="w1")
    again = process(document, receive_count=1, worker="w1", resumes=away.value.resumes)

    assert again is EventOutcome.SKIPPED


def test_through_a_pooler_nothing_is_prepared(pgbouncer: None) -> None:
    for _ in range(PREPARE_AFTER + 3):
        assert isinstance(claim(new_event(), worker="w1"), Claim)

    assert prepared() == []


@pytest.mark.parametrize("role", ["api", "worker"])
def test_preflight_reads_back_the_limits_that_are_in_force(role: Any, pgbouncer: None) -> None:
    connection.ensure_connection()

    found = _limits(role)

    assert found.is_ok
    assert found.note == "through a pooler: the limits are set in each transaction"


def test_preflight_names_a_limit_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.ensure_connection()
    monkeypatch.setattr("skincare.operations.deployment_checks.prepare_session", lambda **_: None)

    found = _limits("api")

    assert found.problem.startswith("lock_timeout is 0ms, not 2000ms; statement_timeout is 0ms")


def test_preflight_names_a_limit_that_only_transactions_have(
    monkeypatch: pytest.MonkeyPatch, pgbouncer: None
) -> None:
    connection.ensure_connection()
    prepare_session(connection=connection, service="api")
    [limited] = connection.execute_wrappers
    limited._limits_statements = False
    monkeypatch.setattr("skincare.operations.deployment_checks.prepare_session", lambda **_: None)

    found = _limits("api")

    assert found.problem.startswith("idle_in_transaction_session_timeout is 0ms")
    assert "statement_timeout is 0ms, not 4000ms" in found.problem


#: As the settings have them.
SOCKET_OPTIONS = {
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


@pytest.fixture
def asked_for(pgbouncer: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is a TCP one, and asks for these options."""
    for name, value in SOCKET_OPTIONS.items():
        monkeypatch.setitem(connection.settings_dict["OPTIONS"], name, value)
    connection.ensure_connection()


def test_the_kernel_has_the_socket_options_that_the_settings_ask_for(asked_for: None) -> None:
    assert socket_options_in_force() == SOCKET_OPTIONS
    assert _limits("api").is_ok


def test_preflight_names_what_a_socket_lacks(asked_for: None) -> None:
    with socket.socket(fileno=os.dup(connection.connection.fileno())) as same:
        same.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 0)

    assert _limits("api").problem.startswith("tcp_user_timeout is 0, not 10000: a server that")
