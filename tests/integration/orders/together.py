"""Real concurrency: functions that start at the same moment, each with its own connection."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from django.db import connection, connections

Result = TypeVar("Result")


def together(calls: Sequence[Callable[[], Result]]) -> list[Result | Exception]:
    """Run all calls at once; return what each returned or raised."""
    start = Barrier(len(calls))

    def run(call: Callable[[], Result]) -> Result | Exception:
        try:
            start.wait(timeout=30)
            return call()
        except Exception as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def somebody_waits_for_a_lock() -> bool:
    """Whether a session of this PostgreSQL waits for a lock that another one holds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])
