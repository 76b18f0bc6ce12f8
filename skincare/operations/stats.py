"""How things stand: the queues, the outbox, what was processed. For the page, and for commands.

Nothing is estimated silently: a figure that cannot be had says why, or what it stands for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from skincare.events.queue_client import open_dead_letter_queue, sqs_client
from skincare.sqs.dead_letters import NoDeadLetterQueue, Unreachable, answered
from skincare.sqs.queues import QUEUE_RETENTION, Depth, depth

#: A figure that takes longer is worth less than the database's time.
_STATEMENT_TIMEOUT_MS: Final = 3000


@dataclass(frozen=True)
class QueueStats:
    """One queue as SQS counts it (approximately).

    `error` says why SQS gave no figures; `depth` is None then. `oldest_age_seconds` is None where
    it is not known or nothing waits, and `oldest_age_note` always says what it stands for: SQS
    itself reports it only to CloudWatch (ApproximateAgeOfOldestMessage).
    """

    name: str
    is_dlq: bool
    depth: Depth | None
    oldest_age_seconds: float | None
    oldest_age_note: str
    error: str | None = None


@dataclass(frozen=True)
class OutboxStats:
    """What waits to be sent. `failing` rows were tried at least once; ages are in seconds."""

    unsent: int
    failing: int
    oldest_age_seconds: float | None
    last_error: str


@dataclass(frozen=True)
class EventStats:
    """How many events are in which state now.

    `interrupted` events were claimed by a worker that died: their lease is over.
    """

    in_progress: int
    interrupted: int
    failed: int


@dataclass(frozen=True)
class Bucket:
    """What ended within `seconds` from `start`: done (skipped ones too), or failed at last.

    `waited` is the longest time, in seconds, that one of those done had waited for a worker.
    """

    start: datetime
    seconds: float
    done: int
    failed: int
    waited: float = 0.0


@dataclass(frozen=True)
class Latency:
    """Seconds from an event's creation, by its producer's clock, to done. None without events."""

    events: int
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True)
class ErrorCount:
    """Events whose last try failed with the same error, ids and numbers in it aside."""

    error: str
    events: int
    last_at: datetime
    example_event_id: str


def queue_stats() -> list[QueueStats]:
    """Return the queue's figures and its dead-letter queue's. Nothing is raised."""
    return [_work_queue(), _dead_letter_queue()]


def _work_queue() -> QueueStats:
    url = settings.ORDER_EVENTS_QUEUE_URL
    name = url.rsplit("/", 1)[-1]
    try:
        with answered():
            counted = depth(sqs_client(), url)
    except Unreachable as error:
        return QueueStats(name, False, None, None, "not available", str(error))
    if not counted.visible + counted.in_flight + counted.delayed:
        return QueueStats(name, False, counted, None, "nothing waits")
    # One that so many others have overtaken is lost; `skincare.events.unclaimed` finds it.
    may_wait = sum(counted) + _MOST_OVERTAKEN
    try:
        age = _oldest_unclaimed_seconds(among=min(may_wait, _MOST_LOOKED_AT))
    except DatabaseError as error:
        return QueueStats(name, False, counted, None, f"not available: {type(error).__name__}")
    if age is None:
        note = "not available: what waits was not sent by our outbox, or was tried before"
    else:
        note = "since our outbox sent the oldest event that no worker has claimed"
        if may_wait > _MOST_LOOKED_AT:
            note += f", of the {_MOST_LOOKED_AT} that it sent last: at least"
    return QueueStats(name, False, counted, age, note)


def _dead_letter_queue() -> QueueStats:
    name = "dead-letter queue"
    try:
        queue = open_dead_letter_queue()
        name = queue.name
        counted = queue.depth()
        dead_letters = queue.sample() if counted.visible else []
    except NoDeadLetterQueue:
        return QueueStats(name, True, None, None, "not available", "there is none")
    except Unreachable as error:
        return QueueStats(name, True, None, None, "not available", str(error))
    if not dead_letters:
        return QueueStats(name, True, counted, None, "nothing waits")
    age = (
        timezone.now() - min(dead_letter.sent_at for dead_letter in dead_letters)
    ).total_seconds()
    if counted.visible + counted.in_flight <= len(dead_letters):
        note = "since it was first sent"
    else:
        note = f"since it was first sent, the oldest of {len(dead_letters)} looked at: at least"
    return QueueStats(name, True, counted, max(age, 0.0), note)


#: Events that are sent and claimed while one waits, beyond those that wait with it.
_MOST_OVERTAKEN: Final = 2_000
#: Rows of the outbox that are looked at for the oldest.
_MOST_LOOKED_AT: Final = 50_000

#: Of all that the queue may still hold, only the newest are looked up among what was claimed. By
#: `statement_timestamp()`: no index answers a comparison with `clock_timestamp()`.
_OLDEST_UNCLAIMED: Final = """
SELECT EXTRACT(EPOCH FROM clock_timestamp() - min(sent_at))
FROM (
    SELECT event_id, sent_at FROM events_outboxevent
    WHERE sent_at > statement_timestamp() - make_interval(secs => %s)
    ORDER BY sent_at DESC LIMIT %s
) sent
WHERE NOT EXISTS (SELECT FROM events_processedevent seen WHERE seen.event_id = sent.event_id)
"""


def _oldest_unclaimed_seconds(*, among: int) -> float | None:
    """Return how long ago the oldest unclaimed event was sent, of the newest `among` that were."""
    with _bounded():
        [(age,)] = _rows(_OLDEST_UNCLAIMED, [QUEUE_RETENTION, among])
    return None if age is None else max(float(age), 0.0)


#: A row that is sent again waits since then, as long as it has not failed: `outbox.resend` says so.
_OUTBOX: Final = """
SELECT count(*) FILTER (WHERE send_attempts > 0 OR next_attempt_at <= clock_timestamp()),
       count(*) FILTER (WHERE send_attempts > 0),
       EXTRACT(EPOCH FROM clock_timestamp() - min(
           CASE WHEN send_attempts = 0 THEN next_attempt_at ELSE created_at END)),
       COALESCE((array_agg(last_error ORDER BY next_attempt_at DESC)
                 FILTER (WHERE last_error <> ''))[1], '')
FROM events_outboxevent
WHERE sent_at IS NULL
"""


def outbox_stats() -> OutboxStats:
    """Return what waits in the outbox. Raises django.db.Error."""
    with _bounded():
        [(unsent, failing, age, last_error)] = _rows(_OUTBOX)
    oldest = None if age is None else max(float(age), 0.0)
    return OutboxStats(unsent, failing, oldest, last_error)


_STATES: Final = """
SELECT count(*) FILTER (WHERE status <> 'failed' AND lease_expires_at > clock_timestamp()),
       count(*) FILTER (WHERE status <> 'failed' AND lease_expires_at <= clock_timestamp()),
       count(*) FILTER (WHERE status = 'failed' AND put_off_until IS NULL)
FROM events_processedevent
WHERE status IN ('processing', 'effects_done', 'failed')
"""


def event_stats() -> EventStats:
    """Return how many events are not finished. Raises django.db.Error."""
    with _bounded():
        [counts] = _rows(_STATES)
    return EventStats(*counts)


def emails_waiting() -> int:
    """Return how many emails wait for the provider; the outbox sends their events again.

    Raises django.db.Error.
    """
    with _bounded():
        [(waiting,)] = _rows(
            "SELECT count(*) FROM events_processedevent WHERE put_off_until IS NOT NULL"
        )
    return waiting


_RATES: Final = """
SELECT width_bucket(EXTRACT(EPOCH FROM at), %(start)s, %(end)s, %(buckets)s) AS bucket,
       count(*) FILTER (WHERE NOT failed), count(*) FILTER (WHERE failed),
       COALESCE(GREATEST(max(waited), 0), 0)::float8
FROM (
    SELECT finished_at AS at, false AS failed,
           EXTRACT(EPOCH FROM first_claimed_at - created_at) AS waited
    FROM events_processedevent
    WHERE finished_at >= to_timestamp(%(start)s) AND finished_at < to_timestamp(%(end)s)
    UNION ALL
    SELECT claimed_at, true, NULL FROM events_processedevent
    WHERE status = 'failed' AND put_off_until IS NULL
      AND claimed_at >= to_timestamp(%(start)s) AND claimed_at < to_timestamp(%(end)s)
) ended
GROUP BY bucket
"""


def rates(period: timedelta, *, buckets: int = 60) -> list[Bucket]:
    """Return how many events ended in each of `buckets` equal parts of the last `period`.

    A failed event counts at its last try, and no more once a later try succeeds. Raises
    django.db.Error.
    """
    end = timezone.now()
    width = period / buckets
    start = end - period
    parameters = {"start": start.timestamp(), "end": end.timestamp(), "buckets": buckets}
    with _bounded():
        counts = {number: tuple(values) for number, *values in _rows(_RATES, parameters)}
    return [
        Bucket(start + width * number, width.total_seconds(), *counts.get(number + 1, (0, 0, 0.0)))
        for number in range(buckets)
    ]


_LATENCY: Final = """
SELECT count(*), percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (
    ORDER BY GREATEST(EXTRACT(EPOCH FROM finished_at - created_at), 0)::float8)
FROM events_processedevent
WHERE status = 'done' AND finished_at >= %s
"""


def latency(period: timedelta) -> Latency:
    """Return the time from creation to done of what was done in `period`. Raises django.db.Error.

    A replayed event counts from its first creation.
    """
    with _bounded():
        [(events, percentiles)] = _rows(_LATENCY, [timezone.now() - period])
    p50, p95, p99 = percentiles or (None, None, None)
    return Latency(events, p50, p95, p99)


_TOP_ERRORS: Final = """
SELECT error, count(*) AS events, max(claimed_at), (array_agg(event_id ORDER BY claimed_at DESC))[1]
FROM (
    SELECT event_id, claimed_at,
           regexp_replace(
               regexp_replace(split_part(last_error, E'\\n', 1),
                   '[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}', '…', 'g'),
               '[0-9]+', '#', 'g') AS error
    FROM events_processedevent
    WHERE status = 'failed' AND put_off_until IS NULL AND claimed_at >= %s
) failed
GROUP BY error
ORDER BY events DESC, max(claimed_at) DESC
LIMIT %s
"""


def top_errors(period: timedelta, *, limit: int = 10) -> list[ErrorCount]:
    """Return what failed most, by error, among events that failed last within `period`.

    Ids within an error are written "…" and numbers "#", so that equal faults count together.
    Raises django.db.Error.
    """
    with _bounded():
        return [ErrorCount(*row) for row in _rows(_TOP_ERRORS, [timezone.now() - period, limit])]


@contextmanager
def _bounded() -> Iterator[None]:
    """Bound what a figure may cost. A transaction of its own, so that nothing else is bound."""
    with transaction.atomic():
        _rows("SELECT set_config('statement_timeout', %s, true)", [f"{_STATEMENT_TIMEOUT_MS}ms"])
        yield


def _rows(sql: str, parameters: Any = None) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()
