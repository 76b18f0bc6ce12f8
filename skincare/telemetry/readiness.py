"""Whether the database answers, known within a bounded time, whatever hangs."""

import threading
import time
from collections.abc import Callable
from typing import Final

from django.db import OperationalError, connection


class BoundedCheck:
    """Runs `check` in a thread of its own and waits for it for a bounded time.

    Callers at the same time share one run, so a check that hangs costs one thread, not one for each
    of the load balancer's calls. After `abandon_after` seconds it is left behind and another begun.
    """

    def __init__(self, check: Callable[[], object], *, abandon_after: float = 10.0) -> None:
        self._check = check
        self._abandon_after = abandon_after
        self._lock = threading.Lock()
        self._run: _Run | None = None

    def passes(self, *, within: float) -> bool:
        """Return whether the check ended without an error `within` this many seconds."""
        with self._lock:
            if self._run is None or self._run.is_over(self._abandon_after):
                self._run = _Run(self._check)
            run = self._run
        return run.ended.wait(timeout=within) and run.error is None


class _Run:
    def __init__(self, check: Callable[[], object]) -> None:
        self._check = check
        self._started = time.monotonic()
        self.ended = threading.Event()
        self.error: Exception | None = None
        threading.Thread(target=self._work, name="readiness", daemon=True).start()

    def is_over(self, abandon_after: float) -> bool:
        return self.ended.is_set() or time.monotonic() - self._started > abandon_after

    def _work(self) -> None:
        try:
            self._check()
        except Exception as error:  # whatever it is, the answer is no
            self.error = error
        finally:
            self.ended.set()


def ask_database() -> None:
    """Connect, ask whether we may write, and hang up: what a new request needs to work.

    Raises django.db.Error, also for a server that is a reader since a failover.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_read_only")
            if cursor.fetchone() != ("off",):
                raise OperationalError("the database is read-only")
    finally:
        connection.close()


database_check: Final = BoundedCheck(ask_database)
