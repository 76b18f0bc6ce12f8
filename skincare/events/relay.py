"""The relay: sends unsent outbox rows to SQS in batches and marks them sent.

It runs as one background thread in each process that publishes, and as `manage.py relay_outbox`.
Rows stay locked while they are sent, so two relays never send the same row at once; a relay that
dies frees its rows at once. Where SQS took a batch and its answer was lost, the batch is sent
twice, and the consumer's claim copes.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from celery import Celery
from django.conf import settings
from django.db import close_old_connections, connection, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.module_loading import import_string

from skincare.events.models import OutboxEvent
from skincare.events.routing import task_for

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Relayed:
    """What one pass did: rows sent, rows that failed singly, and whether SQS itself failed."""

    sent: int = 0
    failed: int = 0
    sqs_failed: bool = False


def run_once() -> Relayed:
    """Lock up to `settings.RELAY_ROWS` unsent rows, send them, mark them; return what happened.

    Errors of SQS are counted, never raised; errors of the database are.
    """
    with transaction.atomic():
        rows = list(
            OutboxEvent.objects.select_for_update(skip_locked=True)
            .filter(sent_at__isnull=True, next_attempt_at__lte=Now())
            .order_by("next_attempt_at", "id")[: settings.RELAY_ROWS]
        )
        if not rows:
            return Relayed()
        started = time.monotonic()
        failures = _send(rows)
        sent = [row.id for row in rows if row.event_id not in failures]
        OutboxEvent.objects.filter(id__in=sent).update(
            sent_at=Now(), send_attempts=F("send_attempts") + 1, last_error=""
        )
        failed = [row for row in rows if row.event_id in failures]
        # Rows are put off singly only where SQS itself works: when it is down they must all go out
        # as soon as it is back.
        sqs_failed = not sent and not any(failures[row.event_id].sender_fault for row in failed)
        for row in failed:
            _record_failure(row, failures[row.event_id], put_off=not sqs_failed)
    log.info(
        "outbox_relayed",
        sent=len(sent),
        failed=len(failed),
        duration_ms=round((time.monotonic() - started) * 1000),
    )
    return Relayed(sent=len(sent), failed=len(failed), sqs_failed=sqs_failed)


@dataclass(frozen=True)
class _Failure:
    error: str
    sender_fault: bool


def _send(rows: Sequence[OutboxEvent]) -> dict[str, _Failure]:
    """Send the rows as Celery messages in batches; return the failures by event id."""
    app: Celery = import_string(settings.CELERY_APP)
    try:
        with app.producer_or_acquire() as producer, producer.channel.batch() as batch:
            for row in rows:
                app.send_task(
                    task_for(row.event_type),
                    args=[row.payload],
                    task_id=row.event_id,
                    producer=producer,
                )
    except Exception as error:  # whatever the client raises, the rows stay unsent
        log.warning("outbox_send_failed", error=type(error).__name__, exc_info=error)
        return {row.event_id: _Failure(type(error).__name__, sender_fault=False) for row in rows}
    return {
        event_id: _Failure(f"{failure.code}: {failure.message}", failure.sender_fault)
        for event_id, failure in batch.failures.items()
    }


def _record_failure(row: OutboxEvent, failure: _Failure, *, put_off: bool) -> None:
    row.send_attempts += 1
    row.last_error = failure.error[:500]
    if put_off:
        row.next_attempt_at = timezone.now() + timedelta(seconds=backoff(row.send_attempts))
    row.save(update_fields=["send_attempts", "last_error", "next_attempt_at"])
    log.warning(
        "outbox_row_failed",
        event_id=row.event_id,
        attempts=row.send_attempts,
        sender_fault=failure.sender_fault,
    )


def backoff(failures: int) -> float:
    """Return the seconds to wait after the n-th failure in a row: exponential, half random."""
    first, longest = settings.RELAY_BACKOFF_SECONDS
    ceiling = min(longest, first * 2 ** min(failures - 1, 16))
    return random.uniform(ceiling / 2, ceiling)  # noqa: S311  (not a secret)


@dataclass
class _Job:
    seconds: float
    name: str
    run: Callable[[], object]
    due: float = 0.0


_jobs: list[_Job] = []


def every(seconds: float, name: str, job: Callable[[], object]) -> None:
    """Run `job` about every `seconds` in each relay. Several relays run it at the same time."""
    _jobs.append(_Job(seconds, name, job))


class Relay:
    """The relay's loop: send what there is, then wait for a wake-up or the next sweep."""

    def __init__(self) -> None:
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._failures = 0

    def wake(self) -> None:
        """Say that there is something to send."""
        self._woken.set()

    def stop(self) -> None:
        """Let the loop end after the pass that it is in."""
        self._stopped.set()
        self._woken.set()

    def run(self) -> None:
        """Relay until `stop`. Nothing that fails ends it."""
        with structlog.contextvars.bound_contextvars(service="relay"):
            self._run()

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                if self._failures:
                    # New rows do not shorten this wait: a failing SQS gets no more calls for them.
                    self._stopped.wait(timeout=backoff(self._failures))
                else:
                    self._woken.wait(timeout=self._pause())
                self._woken.clear()
                if not self._stopped.is_set():
                    self.run_pass()
        finally:
            connection.close()

    def run_pass(self) -> bool:
        """Send all that is due, and run the periodic jobs that are due.

        Returns whether SQS and the database worked.
        """
        try:
            close_old_connections()
            relayed = run_once()
            while relayed.sent and not self._stopped.is_set():
                relayed = run_once()
            works = not relayed.sqs_failed
            self._run_jobs()
        except Exception as error:  # the database is away: the rows wait, and so does the loop
            works = False
            log.warning("relay_failed", error=type(error).__name__, exc_info=error)
        self._failures = 0 if works else self._failures + 1
        return works

    def _pause(self) -> float:
        # Spread, so that many relays do not sweep in step.
        return settings.RELAY_SWEEP_SECONDS * random.uniform(0.75, 1.25)  # noqa: S311

    def _run_jobs(self) -> None:
        now = time.monotonic()
        for job in _jobs:
            if now >= job.due:
                job.due = now + job.seconds
                try:
                    job.run()
                except Exception as error:
                    log.warning("relay_job_failed", job=job.name, exc_info=error)


_lock = threading.Lock()
_relay: Relay | None = None
_thread: threading.Thread | None = None


def start() -> Relay | None:
    """Start this process's relay thread if it does not run yet; return the relay.

    None where `settings.RELAY_IN_PROCESS` is off.
    """
    global _relay, _thread
    if not settings.RELAY_IN_PROCESS:
        return None
    if _thread is not None and _thread.is_alive():
        return _relay
    with _lock:
        if _thread is None or not _thread.is_alive():
            _relay = Relay()
            _thread = threading.Thread(target=_relay.run, name="outbox-relay", daemon=True)
            _thread.start()
    return _relay


def wake() -> None:
    """Tell this process's relay that a transaction with new rows has committed. Never blocks."""
    relay = start()
    if relay is not None:
        relay.wake()


def _forget_after_fork() -> None:
    # Threads do not survive a fork: the child starts its own when it first publishes.
    global _relay, _thread, _lock
    _relay, _thread, _lock = None, None, threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
