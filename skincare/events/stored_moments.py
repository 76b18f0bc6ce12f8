"""Reading moments from PostgreSQL: also those that Python's calendar, or a time zone, cannot hold.

The rule of `skincare.events.moments` keeps them out. A row from before it, or written past it, must
not take away the list in which somebody would find it: its moment is read as the nearest one that
can be shown, which still looks like what it is.
"""

from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.types.datetime import TimestamptzLoader

#: A year from the ends of Python's calendar, so that adding days and other time zones works.
FIRST: Final = datetime(2, 1, 1, tzinfo=UTC)
LAST: Final = datetime(9998, 12, 31, tzinfo=UTC)


class MomentLoader(TimestamptzLoader):
    """Reads a `timestamptz` in UTC, between `FIRST` and `LAST`."""

    timezone = UTC  # by it Django knows that the loader does what its own would

    def load(self, data: Any) -> datetime:
        try:
            moment: datetime = super().load(data).replace(tzinfo=UTC)
        except psycopg.DataError:
            text = bytes(data)
            return FIRST if text.startswith(b"-") or text.endswith(b"BC") else LAST
        return min(max(moment, FIRST), LAST)


def read_any_moment(*, connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Have a new connection read moments so. Connected to Django's `connection_created`."""
    connection.connection.adapters.register_loader("timestamptz", MomentLoader)
