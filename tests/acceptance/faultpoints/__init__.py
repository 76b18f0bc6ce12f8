"""Points between the steps of an event at which a test makes the worker fail.

A test puts files `<event_id>.<point>.<n>` into the folder FAULTS, each with what must happen
there: `raise`, `kill` (the child process dies), `hang` (until the hard time limit), `grow` (until
the kernel kills the process for its memory) or `cut` (the session of PostgreSQL ends). Each file is
used once, in the order of n.

    claim ──▶ effects ──▶ [effects] ──▶ commit ──▶ [email] ──▶ email ──▶ [done] ──▶ done
"""

import os
import signal
import time
from pathlib import Path

from django.db import connection


class InjectedError(Exception):
    """What a point raises."""


def reach(point: str, event_id: str) -> None:
    """Do what the next file for this point and event says."""
    for plan in sorted(Path(os.environ["FAULTS"]).glob(f"{event_id}.{point}.*")):
        action = plan.read_text()
        plan.unlink()
        if action == "raise":
            raise InjectedError(point)
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "cut":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        if action == "hang":
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # the soft limit's signal: be deaf to it
            time.sleep(3600)  # until the hard limit kills this process
        if action == "grow":
            held = bytearray()
            while True:
                held += bytes(16 * 1024 * 1024)
