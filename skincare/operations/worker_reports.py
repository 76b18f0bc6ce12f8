"""A worker reports to PostgreSQL every few seconds that it lives, and what it does.

Celery's own events and remote control need a broker that can broadcast; SQS cannot. A thread of the
worker's main process writes one row instead. It is a thread, so that the row also shows that the
event loop hangs; with a connection that is open for one statement only, because the pool may fork
at any time and a child must not share it.
"""

import json
import os
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import uuid4

import structlog
from celery.worker import state
from django.conf import settings
from django.db import connection
from django.utils import timezone

from skincare.operations.models import WorkerReport
from skincare.sqs.health import health_file_of_process, unhealthy, waiting
from skincare.telemetry.identity import IDENTITY

log = structlog.get_logger(__name__)

#: Seconds between two reports.
INTERVAL: Final = 10.0
#: Rows of workers that ended without a word are kept so long.
FORGOTTEN_AFTER: Final = timedelta(hours=1)


class Reporter:
    """Writes the report of this process until it is stopped."""

    def __init__(self, *, processes: int) -> None:
        self._row = WorkerReport(
            id=uuid4(),
            host=socket.gethostname()[:255],
            pid=os.getpid(),
            release=IDENTITY.release[:128],
            processes=processes,
            started_at=timezone.now(),
        )
        self._stopped = threading.Event()
        self._is_down = False
        self._thread = threading.Thread(target=self._run, name="worker-reports", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread, which takes the row away."""
        self._stopped.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        self._attempt(self._forget_others)
        while not self._stopped.is_set():
            self._attempt(self.report)
            self._stopped.wait(INTERVAL)
        self._attempt(lambda: WorkerReport.objects.filter(pk=self._row.pk).delete())

    def report(self) -> None:
        """Write the row as things are now."""
        health = _health()
        row = self._row
        row.seen_at = timezone.now()
        row.doing = running_tasks()
        row.state = str(health.get("state", "running"))[:16]
        row.trouble = _trouble(health)
        WorkerReport.objects.bulk_create(
            [row],
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=["seen_at", "doing", "state", "trouble"],
        )

    def _forget_others(self) -> None:
        WorkerReport.objects.filter(seen_at__lt=timezone.now() - FORGOTTEN_AFTER).delete()

    def _attempt(self, action: Any) -> None:
        """Do it with a connection of its own; whatever fails, the next report is tried."""
        try:
            action()
            self._is_down = False
        except Exception as error:  # the loop changes what we read, and the database may be away
            if not self._is_down:
                log.warning("worker_report_not_written", error=type(error).__name__)
            self._is_down = True
        finally:
            connection.close()


def running_tasks() -> list[dict[str, str]]:
    """Return what this worker's processes work on at this moment."""
    return [
        {
            "task": str(request.name),
            "event_id": str(request.id),
            "since": datetime.fromtimestamp(request.time_start or time.time(), UTC).isoformat(),
        }
        for request in list(state.active_requests)
    ]


def _health() -> dict[str, Any]:
    try:
        report = json.loads(health_file_of_process(settings.SQS_POLICY.health_file).read_text())
    except (OSError, ValueError):
        return {}
    # Another worker on this host may have been given the same file.
    return report if report.get("pid") == os.getpid() else {}


def _trouble(health: dict[str, Any]) -> str:
    if not health:
        return ""
    try:
        return unhealthy(health, now=time.monotonic()) or "; ".join(waiting(health))
    except (KeyError, TypeError):
        return "its health file cannot be read"


_reporters: list[Reporter] = []


def start_reports(sender: Any, **_: Any) -> None:
    """Start this worker's reports. Connect it to Celery's `worker_ready`."""
    pool = getattr(sender, "pool", None)
    reporter = Reporter(processes=int(getattr(pool, "limit", 0) or 0))
    _reporters.append(reporter)
    reporter.start()


def stop_reports(**_: Any) -> None:
    """Take this worker's row away. Connect it to Celery's `worker_shutdown`."""
    while _reporters:
        _reporters.pop().stop()
