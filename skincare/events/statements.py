"""Statements that are the same for each event or request, but for their values."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.backends.utils import CursorWrapper


@contextmanager
def prepared_cursor() -> Iterator[CursorWrapper]:
    """A cursor whose statements PostgreSQL parses and plans once for a session, where they come
    often. For a short one that takes longer than to execute it.

    Django's own writes the values into the text, so that each is another statement. Values go apart
    from it here: one whose type the statement does not tell needs a cast. Through a pooler nothing
    is prepared (`database_sessions`).
    """
    with connection.cursor() as cursor:
        cursor.cursor = ServerBindingCursor(connection.connection)  # type: ignore[call-arg]
        yield cursor
