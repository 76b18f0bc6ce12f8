"""The relay: sends unsent outbox rows to SQS in batches and marks them sent.

It runs as one background thread in each process that publishes, and as `manage.py relay_outbox`.
Rows are leased first, then sent while no transaction is open, then marked: a slow SQS holds no
lock, and two relays never send the same row at once. The rows of a relay that dies are sent by
another one when the lease is over. Where SQS took a batch and its answer was lost, the batch is
sent twice, and the consumer's claim copes. Leases and waits go by the database's clock.
"""

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

import structlog
from celery import Celery
from django.conf import settings
from django.db import close_old_connections, connection
from django.utils.module_loading import import_string

from skincare.events.database_sessions import is_away
from skincare.events.routing import task_for
from skincare.sqs.template import MessageTemplate

log = structlog.get_logger(__name__)

#: Rows of one SendMessageBatch.
_BATCH: Final = 10


@dataclass(frozen=True)
class Relayed:
    """What one pass did: rows sent, rows that failed singly, and whether SQS itself failed. Rows
    that it had no time for are `untried`.
    """

    sent: int = 0
    failed: int = 0
    sqs_failed: bool = False
    untried: int = 0

    @property
    def leaves_backlog(self) -> bool:
        """Whether there was more than one pass can send."""
        return self.untried > 0 or self.sent + self.failed >= settings.RELAY_ROWS


class _Row(NamedTuple):
    id: int
    event_id: str
    event_type: str
    payload: str
    send_attempts: int


@dataclass(frozen=True)
class _Failure:
    error: str
    sender_fault: bool


def run_once(*, in_flight: int = 1) -> Relayed:
    """Lease up to `settings.RELAY_ROWS` unsent rows, send them, mark them; return what happened.

    `in_flight` is how many batches are sent at the same time. Errors of SQS are counted, never
    raised; errors of the database are.
    """
    rows, leased_until = _lease()
    if not rows:
        return Relayed()
    started = time.monotonic()
    failures, untried = _send(rows, in_flight=in_flight)
    sent = [row for row in rows if row.event_id not in failures and row.id not in untried]
    failed = [row for row in rows if row.event_id in failures]
    # Rows are put off singly only where SQS itself works: when it is down they must all go out as
    # soon as it is back.
    sqs_failed = not sent and not any(failures[row.event_id].sender_fault for row in failed)
    _mark_sent([row.id for row in sent], leased_until)
    _record_failures(failed, failures, leased_until, put_off=not sqs_failed)
    _release(untried, leased_until)
    log.info(
        "outbox_relayed",
        sent=len(sent),
        failed=len(failed),
        duration_ms=round((time.monotonic() - started) * 1000),
    )
    return Relayed(sent=len(sent), failed=len(failed), sqs_failed=sqs_failed, untried=len(untried))


#: Sent rows, nearly all of the table, are not in the index that this reads. Whoever resends a row
#: ends its lease, so the marks below leave a row alone that is to go out once more.
_LEASE: Final = """
UPDATE events_outboxevent
SET leased_until = statement_timestamp() + make_interval(secs => %(seconds)s)
WHERE id IN (
    SELECT id FROM events_outboxevent
    WHERE sent_at IS NULL AND next_attempt_at <= statement_timestamp()
      AND (leased_until IS NULL OR leased_until <= statement_timestamp())
    ORDER BY next_attempt_at, id LIMIT %(rows)s FOR UPDATE SKIP LOCKED
)
RETURNING id, event_id, event_type, payload::text, send_attempts, next_attempt_at, leased_until
"""


def _lease() -> tuple[list[_Row], datetime | None]:
    """Lease what is due; return the rows, the oldest first, and until when the lease lasts."""
    parameters = {"seconds": settings.RELAY_LEASE_SECONDS, "rows": settings.RELAY_ROWS}
    with connection.cursor() as cursor:
        cursor.execute(_LEASE, parameters)
        found = cursor.fetchall()
    found.sort(key=lambda row: (row[5], row[0]))
    return [_Row(*columns[:5]) for columns in found], found[0][6] if found else None


def _send(rows: Sequence[_Row], *, in_flight: int) -> tuple[dict[str, _Failure], set[int]]:
    """Send the rows as Celery messages; return failures by event id, and the ids not tried.

    No call is begun that the lease could not outlast, and none after one that was not answered:
    each would take as long, and the rows fail together.
    """
    last_start = time.monotonic() + settings.RELAY_LEASE_SECONDS / 2
    failures: dict[str, _Failure] = {}
    untried: set[int] = set()
    broken: list[_Failure] = []

    def send(batch: list[_Row]) -> None:
        if broken:
            failures.update({row.event_id: broken[0] for row in batch})
        elif time.monotonic() > last_start:
            untried.update(row.id for row in batch)
        else:
            found = _send_batch(batch)
            failures.update(found)
            if len(found) == len(batch) and not any(f.sender_fault for f in found.values()):
                broken.append(next(iter(found.values())))

    if in_flight == 1:
        for batch in _batches(rows):
            send(batch)
    else:
        with ThreadPoolExecutor(in_flight, thread_name_prefix="outbox-sender") as senders:
            list(senders.map(send, _batches(rows)))
    return failures, untried


def _batches(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    remaining = iter(rows)
    while batch := list(islice(remaining, _BATCH)):
        yield batch


def _send_batch(rows: Sequence[_Row]) -> dict[str, _Failure]:
    app: Celery = import_string(settings.CELERY_APP)
    failures: dict[str, _Failure] = {}
    try:
        templates = [_template(app, task_for(row.event_type)) for row in rows]
        with app.producer_or_acquire() as producer, producer.channel.batch() as batch:
            for row, template in zip(rows, templates, strict=True):
                body = _body(row, template)
                if isinstance(body, _Failure):
                    failures[row.event_id] = body
                else:
                    batch.add(task_id=row.event_id, queue_url=template.queue_url, body=body)
    except Exception as error:  # whatever the client raises, the rows stay unsent
        log.warning("outbox_send_failed", error=type(error).__name__, exc_info=error)
        return {row.event_id: _Failure(type(error).__name__, sender_fault=False) for row in rows}
    return failures | {
        event_id: _Failure(f"{failure.code}: {failure.message}", failure.sender_fault)
        for event_id, failure in batch.failures.items()
    }


def _body(row: _Row, template: MessageTemplate) -> str | _Failure:
    """Return the row's message, or why none can be made."""
    try:
        return template.fill(task_id=row.event_id, argument=json.loads(row.payload))
    except (ValueError, RecursionError) as error:  # PostgreSQL takes more than Python
        return _Failure(f"{type(error).__name__}: {error}", sender_fault=True)


@lru_cache(maxsize=32)
def _template(app: Celery, task: str) -> MessageTemplate:
    return MessageTemplate.of(app, task)


def _mark_sent(ids: Sequence[int], leased_until: datetime | None) -> None:
    if not ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE events_outboxevent SET sent_at = clock_timestamp(), leased_until = NULL,"
            " send_attempts = send_attempts + 1, last_error = ''"
            " WHERE id = ANY(%s) AND leased_until = %s",
            [list(ids), leased_until],
        )


def _record_failures(
    rows: Sequence[_Row],
    failures: dict[str, _Failure],
    leased_until: datetime | None,
    *,
    put_off: bool,
) -> None:
    """Record why the rows were not sent, and end their lease; wait a while where `put_off`."""
    if not rows:
        return
    waits = [backoff(row.send_attempts + 1) if put_off else 0.0 for row in rows]
    errors = [failures[row.event_id].error[:500].replace("\x00", "") for row in rows]
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE events_outboxevent AS row SET send_attempts = send_attempts + 1,"
            " last_error = failed.error, leased_until = NULL, next_attempt_at = CASE"
            " WHEN failed.wait > 0 THEN clock_timestamp() + make_interval(secs => failed.wait)"
            " ELSE next_attempt_at END"
            " FROM unnest(%s::bigint[], %s::text[], %s::float8[]) AS failed (id, error, wait)"
            " WHERE row.id = failed.id AND row.leased_until = %s",
            [[row.id for row in rows], errors, waits, leased_until],
        )
    for row in rows:
        log.warning(
            "outbox_row_failed",
            event_id=row.event_id,
            attempts=row.send_attempts + 1,
            sender_fault=failures[row.event_id].sender_fault,
        )


def _release(ids: set[int], leased_until: datetime | None) -> None:
    if not ids:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE events_outboxevent SET leased_until = NULL"
            " WHERE id = ANY(%s) AND leased_until = %s",
            [list(ids), leased_until],
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
        is_database_away = False
        try:
            close_old_connections()
            works = self._send_due()
        except Exception as error:  # the rows wait, and so does the loop
            works, is_database_away = False, is_away(error)
            log.warning("relay_failed", error=type(error).__name__, exc_info=error)
        if not is_database_away:  # else each job would wait for it in vain
            self._run_jobs()
        self._failures = 0 if works else self._failures + 1
        return works

    def _send_due(self) -> bool:
        relayed = run_once()
        in_flight = 1
        while relayed.sent and not self._stopped.is_set():
            self._run_jobs()  # in a rush there may be no end of this for hours
            if relayed.leaves_backlog:
                # Go on faster, step by step; each batch in flight takes a client of SQS.
                in_flight = min(in_flight * 2, settings.RELAY_BATCHES_IN_FLIGHT)
            else:
                # In a rush, a pass for each commit would cost more than the requests do.
                in_flight = 1
                self._stopped.wait(settings.RELAY_PAUSE_SECONDS)
            relayed = run_once(in_flight=in_flight)
        return not relayed.sqs_failed

    def _pause(self) -> float:
        # Spread, so that many relays do not sweep in step.
        return settings.RELAY_SWEEP_SECONDS * random.uniform(0.75, 1.25)  # noqa: S311

    def _run_jobs(self) -> None:
        now = time.monotonic()
        for job in _jobs:
            if now >= job.due and not self._stopped.is_set():
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
    _template.cache_clear()  # a message names the process that it comes from


os.register_at_fork(after_in_child=_forget_after_fork)
