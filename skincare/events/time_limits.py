"""How long PostgreSQL lets a statement wait for a lock, and run, by the service that asks.

A session that hangs with a row locked then costs a request seconds and a clear answer, not a thread
until it goes. Commands (`manage`) have no limit: a migration may take as long as it needs.
"""

from typing import Any

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper

from skincare.telemetry.identity import current_service


def limit_time(*, connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Set the limits of a new connection. Connected to Django's `connection_created`."""
    limits = settings.DATABASE_TIMEOUTS.get(current_service())
    if limits is None:
        return
    lock, statement = (f"{seconds * 1000:.0f}ms" for seconds in limits)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('lock_timeout', %s, false), "
            "set_config('statement_timeout', %s, false)",
            [lock, statement],
        )
