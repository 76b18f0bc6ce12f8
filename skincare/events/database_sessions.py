"""A session of PostgreSQL: its limits, whether it can write, and what counts as PostgreSQL away.

A session that hangs with a row locked costs a request seconds and a clear answer, not a thread
until it goes. Commands (`manage`) have no limit of locks and statements: a migration may take as
long as it needs. A transaction that waits longer than its claim lasts belongs to a process that
died or hangs: its locks must not keep the worker out that takes the event over.

Through a pooler in transaction mode (PgBouncer, RDS Proxy) a session has no settings of its own,
and what one client set there another one would find: each transaction sets the limits then, and a
statement outside of one gets a transaction to itself.
"""

import os
import socket
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any, Final

import psycopg
from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import errors
from psycopg.pq import TransactionStatus

from skincare.telemetry.identity import current_service

#: PostgreSQL's words for "not now": it stops, starts, is full, is a reader since a failover. Or it
#: does not have what this session has prepared, which a new session prepares again: a migration has
#: changed what that returns (0A000), or others were given the session meanwhile (26000, 42P05).
#: https://www.postgresql.org/docs/current/errcodes-appendix.html
_AWAY: Final = frozenset(
    {"0A000", "25006", "25P03", "26000", "42P05"}
    | {"53100", "53200", "53300", "57P01", "57P02", "57P03", "57P05"}
)
_CONNECTION_EXCEPTION: Final = "08"
#: So often a session executes a statement of `skincare.events.statements` before it prepares it.
PREPARE_AFTER: Final = 3
_GAVE_UP: Final = (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected)


def is_away(error: BaseException) -> bool:
    """Whether the database is away, or cannot write: what failed says nothing about the event."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    sqlstate = getattr(error.__cause__, "sqlstate", None)
    if sqlstate is None:  # no answer at all
        return isinstance(error, OperationalError | InterfaceError)
    return sqlstate in _AWAY or sqlstate.startswith(_CONNECTION_EXCEPTION)


def gave_up(error: BaseException) -> bool:
    """Whether PostgreSQL gave up for us: a lock or a statement took longer than it may, or two
    waited for each other. Nothing is broken; another try may do.
    """
    return isinstance(error, DatabaseError) and isinstance(error.__cause__, _GAVE_UP)


def limits_of(service: str) -> dict[str, str]:
    """Return the limits of a service's sessions, by PostgreSQL's names, in milliseconds."""
    limits = {"idle_in_transaction_session_timeout": settings.CLAIM_LEASE_SECONDS}
    if service in settings.DATABASE_TIMEOUTS:
        lock, statement = settings.DATABASE_TIMEOUTS[service]
        limits |= {"lock_timeout": lock, "statement_timeout": statement}
    return {name: f"{seconds * 1000:.0f}ms" for name, seconds in limits.items()}


def prepare_session(
    *, connection: BaseDatabaseWrapper, service: str | None = None, **_: Any
) -> None:
    """Limit a new session, and have it dropped as soon as it cannot write.

    Connected to Django's `connection_created`.
    """
    connection.is_usable = MethodType(_can_write, connection)  # type: ignore[method-assign]
    connection.execute_wrappers = [
        wrapper
        for wrapper in connection.execute_wrappers
        if not isinstance(wrapper, LimitedTransactions)
    ]
    limits = limits_of(service or current_service())
    raw = connection.connection
    # A pooler gives clients a number of its own, for their cancel requests.
    with connection.wrap_database_errors:
        found = raw.execute(
            f"SELECT {_set(limits, is_local=False)} WHERE pg_backend_pid() = %s",
            [*limits.values(), raw.info.backend_pid],
        ).fetchone()
    raw.prepare_threshold = None if found is None else PREPARE_AFTER
    if found is None:
        connection.execute_wrappers.append(LimitedTransactions(limits))


def limits_in_force(names: Mapping[str, str]) -> dict[str, str]:
    """Return what PostgreSQL itself says of these limits, within a transaction as ours are."""
    with connection.cursor() as cursor:
        found = {}
        for name in names:
            cursor.execute(
                "SELECT setting || COALESCE(unit, '') FROM pg_settings WHERE name = %s", [name]
            )
            found[name] = cursor.fetchone()[0]
    return found


#: libpq's names of what it sets on a socket, and Linux's.
_SOCKET_OPTIONS: Final = {
    "tcp_user_timeout": "TCP_USER_TIMEOUT",
    "keepalives_idle": "TCP_KEEPIDLE",
    "keepalives_interval": "TCP_KEEPINTVL",
    "keepalives_count": "TCP_KEEPCNT",
}


def socket_options_in_force() -> dict[str, int]:
    """Return what the kernel says of the connection's socket, by libpq's names.

    Empty for a socket that is no TCP one; what this kernel does not know is left out.
    """
    with socket.socket(fileno=os.dup(connection.connection.fileno())) as seen:
        if seen.family not in (socket.AF_INET, socket.AF_INET6):
            return {}
        return {
            name: seen.getsockopt(socket.IPPROTO_TCP, getattr(socket, option))
            for name, option in _SOCKET_OPTIONS.items()
            if hasattr(socket, option)
        }


class LimitedTransactions:
    """Sets the limits before the first statement of each transaction, or in one for a statement.

    Not for a command's statements outside of transactions: they have no limit, and some of them,
    such as CREATE INDEX CONCURRENTLY, cannot run inside of one.
    """

    def __init__(self, limits: Mapping[str, str]) -> None:
        self._limits = limits
        self._limits_statements = "statement_timeout" in limits

    def __call__(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any
    ) -> Any:
        wrapper = context["connection"]
        raw = wrapper.connection
        if raw is None or not _is_idle(raw):
            return execute(sql, params, many, context)
        if not raw.autocommit:
            self._set(wrapper)
        elif self._limits_statements:
            with wrapper.wrap_database_errors, raw.transaction():
                self._set(wrapper)
                return execute(sql, params, many, context)
        return execute(sql, params, many, context)

    def _set(self, wrapper: BaseDatabaseWrapper) -> None:
        with wrapper.wrap_database_errors:
            wrapper.connection.execute(
                f"SELECT {_set(self._limits, is_local=True)}", [*self._limits.values()]
            )


def _is_idle(raw: Any) -> bool:
    return raw.info.transaction_status == TransactionStatus.IDLE


def _set(limits: Mapping[str, str], *, is_local: bool) -> str:
    return ", ".join(f"set_config('{name}', %s, {str(is_local).lower()})" for name in limits)


def _can_write(wrapper: BaseDatabaseWrapper) -> bool:
    """Whether the session works and is no reader: Django asks before each request and event."""
    if wrapper.connection is None:
        return False
    try:
        with wrapper.connection.cursor() as cursor:
            cursor.execute("SHOW transaction_read_only")
            return cursor.fetchone() == ("off",)
    except psycopg.Error:
        return False
