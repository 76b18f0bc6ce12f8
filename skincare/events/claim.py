"""The claim: which worker may process an event, until when, and how it ended.

All changes of a `ProcessedEvent` are here, and each is one statement; only its deletion is
elsewhere, in `skincare.events.retention`. A claim's `fence` grows with
every take-over, so a worker that lost its claim (stopped, then continued after its lease) can
commit nothing.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from skincare.events import outbox
from skincare.events.exceptions import (
    AlreadyFinished,
    LostClaim,
    StillInProgress,
    UnknownEvent,
)
from skincare.events.models import ProcessedEvent
from skincare.events.schema import Event, is_same_event, payload_hash
from skincare.events.statements import prepared_cursor

_Status = ProcessedEvent.Status

#: True as long as a claim is not lost: a condition for the statement of whoever acts by one.
HOLDS: Final = (
    "EXISTS (SELECT FROM events_processedevent WHERE event_id = %(event_id)s AND fence = %(fence)s)"
)

#: The last error of an event that a person has opened again.
REOPENED: Final = "reopened for a replay"


@dataclass(frozen=True)
class Duplicate:
    """The event is finished: its message can go."""


@dataclass(frozen=True)
class InProgress:
    """Another worker holds the event; `seconds_left` until its lease ends."""

    seconds_left: float


@dataclass(frozen=True)
class Conflict:
    """Another event, with another payload, already has this id."""


@dataclass(frozen=True)
class Claim:
    """The right to process one event, as long as nobody has a newer `fence`."""

    event_id: str
    fence: int
    attempts: int
    effects_done: bool

    def commit_effects(self) -> None:
        """Record "effects done"; call it last in the effects' transaction.

        Raises `LostClaim`, which rolls the effects back.
        """
        self._write(_EFFECTS_DONE)

    def check(self) -> None:
        """Make sure that nobody has taken the event over. Raises `LostClaim`."""
        held = ProcessedEvent.objects.filter(event_id=self.event_id, fence=self.fence)
        if not held.exists():
            raise LostClaim(self.event_id)

    def finish(self) -> None:
        """Record "done": effects and email. Raises `LostClaim`."""
        self._write(_END, status="done", error="")

    def skip(self, reason: str) -> None:
        """Record that there is nothing to do for this event. Raises `LostClaim`."""
        self._write(_END, status="skipped", error=reason)

    def fail(self, error: str) -> None:
        """Record a failed try; the next receive may claim at once. Raises `LostClaim`."""
        self._write(_FAIL, error=error)

    def put_off(
        self, error: str, *, at_least: float = 0.0, spacing: float | None = None
    ) -> datetime | None:
        """Record that the event waits for its notification, and have the outbox send it again then.

        The wait doubles with each try, from the first to the longest of `settings.PUT_OFF_SECONDS`,
        at random between the half and the whole of it; it is no shorter than `at_least` seconds.
        With `spacing` there was no try, and the event waits for its turn: all that wait come back
        spread over as many times `spacing` seconds as they are, or sooner.

        Returns its end; None, with nothing recorded, once `settings.PUT_OFF_ENDS_AFTER_SECONDS`
        have passed since the first time. Raises `LostClaim`.
        """
        first, longest = settings.PUT_OFF_SECONDS
        parameters: dict[str, Any] = {
            "event_id": self.event_id,
            "fence": self.fence,
            "error": error,
            "first": first,
            "longest": longest,
            "at_least": at_least,
            "spacing": spacing if spacing is None else min(spacing, _LONGEST_SPACING),
            "ends_after": settings.PUT_OFF_ENDS_AFTER_SECONDS,
        }
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(_PUT_OFF, parameters)
                row = cursor.fetchone()
            if row is not None:
                outbox.resend(self.event_id, at=row[0])
                return row[0]
        if ProcessedEvent.objects.filter(event_id=self.event_id, fence=self.fence).exists():
            return None
        raise LostClaim(self.event_id)

    def _write(self, statement: str, **values: str) -> None:
        with prepared_cursor() as cursor:
            cursor.execute(statement, {"event_id": self.event_id, "fence": self.fence, **values})
            if cursor.rowcount != 1:
                raise LostClaim(self.event_id)


#: What is finished is not changed by a claim any more, whoever holds it.
_MINE: Final = (
    "WHERE event_id = %(event_id)s AND fence = %(fence)s AND status NOT IN ('done', 'skipped')"
)
_EFFECTS_DONE: Final = f"""
UPDATE events_processedevent SET status = 'effects_done', effects_at = statement_timestamp()
{_MINE}
"""  # noqa: S608  (constants)
_END: Final = f"""
UPDATE events_processedevent SET
    status = %(status)s, last_error = %(error)s, lease_expires_at = NULL, put_off_until = NULL,
    finished_at = statement_timestamp()
{_MINE}
"""  # noqa: S608  (constants)
_FAIL: Final = f"""
UPDATE events_processedevent SET
    status = 'failed', last_error = %(error)s, lease_expires_at = NULL, put_off_until = NULL
{_MINE}
"""  # noqa: S608  (constants)


#: Seconds between two turns, however slow the pace: those without luck cost the worker little, and
#: when the provider takes more again, it gets more.
_LONGEST_SPACING: Final = 0.2

#: "failed" lets any worker claim it whenever its message comes; `put_off_until` says that it waits.
_PUT_OFF: Final = """
UPDATE events_processedevent SET
    status = 'failed', last_error = %(error)s, lease_expires_at = NULL,
    put_offs = put_offs + CASE WHEN %(spacing)s::float8 IS NULL THEN 1 ELSE 0 END,
    put_off_since = COALESCE(put_off_since, clock_timestamp()),
    put_off_until = clock_timestamp() + make_interval(secs => CASE
        WHEN %(spacing)s::float8 IS NULL THEN GREATEST(
            LEAST(%(longest)s, %(first)s * 2 ^ LEAST(put_offs, 30)) * (0.5 + random() / 2),
            %(at_least)s)
        ELSE %(at_least)s + random() * %(spacing)s::float8 * (
            SELECT count(*) FROM (
                SELECT FROM events_processedevent WHERE put_off_until IS NOT NULL LIMIT 10000
            ) AS waiting)
        END)
WHERE event_id = %(event_id)s AND fence = %(fence)s AND status IN ('processing', 'effects_done')
  AND (put_off_since IS NULL
       OR put_off_since > clock_timestamp() - make_interval(secs => %(ends_after)s))
RETURNING put_off_until
"""

#: ON CONFLICT DO UPDATE locks the row that another worker may be changing, so two workers can never
#: both get an answer from the first part. Where the row is not free, the second part says why; it
#: reads the statement's snapshot, so for a row inserted a moment ago both are empty: ask again.
_CLAIM: Final = """
WITH claimed AS (
    INSERT INTO events_processedevent AS existing (
        event_id, event_type, order_id, payment_id, status, payload, payload_hash, attempts,
        receive_count, fence, lease_expires_at, worker, last_error, created_at,
        first_claimed_at, claimed_at
    ) VALUES (
        %(event_id)s, %(event_type)s, %(order_id)s, %(payment_id)s, 'processing', %(payload)s,
        %(payload_hash)s, 1, %(receive_count)s, 1,
        clock_timestamp() + make_interval(secs => %(lease)s), %(worker)s, '', %(created_at)s,
        clock_timestamp(), clock_timestamp()
    )
    ON CONFLICT (event_id) DO UPDATE SET
        status = CASE WHEN existing.effects_at IS NULL THEN 'processing' ELSE 'effects_done' END,
        attempts = existing.attempts + 1,
        receive_count = EXCLUDED.receive_count,
        fence = existing.fence + 1,
        lease_expires_at = EXCLUDED.lease_expires_at,
        worker = EXCLUDED.worker,
        put_off_until = NULL,
        claimed_at = EXCLUDED.claimed_at
    WHERE existing.payload_hash = EXCLUDED.payload_hash
      AND (existing.status = 'failed'
           OR (existing.status IN ('processing', 'effects_done')
               AND (existing.lease_expires_at <= clock_timestamp()
                    OR existing.fence = %(resumes)s::bigint)))
    RETURNING fence, attempts, effects_at IS NOT NULL AS effects_done
)
SELECT 'claimed', fence, attempts, effects_done, NULL, NULL FROM claimed
UNION ALL
SELECT status, fence, attempts, effects_at IS NOT NULL,
       payload_hash = %(payload_hash)s,
       EXTRACT(EPOCH FROM lease_expires_at - clock_timestamp())
FROM events_processedevent
WHERE event_id = %(event_id)s AND NOT EXISTS (SELECT FROM claimed)
"""


def claim(
    event: Event, *, worker: str, receive_count: int = 1, resumes: int | None = None
) -> Claim | Duplicate | InProgress | Conflict:
    """Ask for the right to process `event`.

    `worker` names who asks and `receive_count` is how often SQS has handed the message out; both
    are kept for the operator. `resumes` is the fence of a claim that the caller knows to be
    abandoned: its lease is not waited for. The lease lasts `settings.CLAIM_LEASE_SECONDS`, by the
    database's clock.
    """
    parameters: dict[str, Any] = {
        "event_id": event.event_id,
        "event_type": event.event_type,
        "order_id": event.order_id,
        "payment_id": event.payment_id,
        "payload": json.dumps(event.document()),
        "payload_hash": payload_hash(event),
        "receive_count": receive_count,
        "lease": settings.CLAIM_LEASE_SECONDS,
        "worker": worker[:255],
        "created_at": event.created,
        "resumes": resumes,
    }
    answer = _ask(parameters)
    if isinstance(answer, Conflict) and (known := _hash_of_the_same(event)):
        return _ask({**parameters, "payload_hash": known})
    return answer


def _ask(parameters: dict[str, Any]) -> Claim | Duplicate | InProgress | Conflict:
    with prepared_cursor() as cursor:
        row = None
        while row is None:
            cursor.execute(_CLAIM, parameters)
            row = cursor.fetchone()
    status, fence, attempts, effects_done, same_payload, seconds_left = row
    if status == "claimed":
        return Claim(parameters["event_id"], fence, attempts, effects_done)
    if not same_payload:
        return Conflict()
    if status in ProcessedEvent.FINISHED:
        return Duplicate()
    return InProgress(seconds_left=max(float(seconds_left or 0), 0.0))


def _hash_of_the_same(event: Event) -> str | None:
    """Return the hash stored for the same event in another spelling; None where it is another."""
    stored = ProcessedEvent.objects.filter(event_id=event.event_id).first()
    return stored.payload_hash if stored and is_same_event(event, stored.payload) else None


def reopen(event_id: str) -> ProcessedEvent:
    """Make a finished or failed event claimable again, effects and email included.

    The effects of the shop are keyed by event id, so what they did stays done once; the email is
    sent again under the same Message-ID. Raises `UnknownEvent`.
    """
    updated = ProcessedEvent.objects.filter(event_id=event_id).update(
        status=_Status.FAILED,
        effects_at=None,
        finished_at=None,
        lease_expires_at=None,
        put_off_until=None,
        put_off_since=None,
        put_offs=0,
        fence=F("fence") + 1,
        last_error=REOPENED,
    )
    if not updated:
        raise UnknownEvent(event_id)
    return ProcessedEvent.objects.get(event_id=event_id)


def skip_event(event_id: str, reason: str) -> ProcessedEvent:
    """Record by hand that nothing more is to be done for an event that is not finished.

    Whoever still works on it has lost its claim. Raises `UnknownEvent`, `AlreadyFinished` and
    `StillInProgress`.
    """
    unfinished = ProcessedEvent.objects.filter(event_id=event_id).exclude(
        status__in=ProcessedEvent.FINISHED
    )
    # A claim whose lease is over belongs to a worker that died.
    free = Q(status=_Status.FAILED) | Q(lease_expires_at__lte=Now())
    skipped = unfinished.filter(free).update(
        status=_Status.SKIPPED,
        finished_at=Now(),
        lease_expires_at=None,
        put_off_until=None,
        fence=F("fence") + 1,
        last_error=reason,
    )
    processed = ProcessedEvent.objects.filter(event_id=event_id).first()
    if processed is None:
        raise UnknownEvent(event_id)
    if not skipped and processed.is_finished:
        raise AlreadyFinished(f"{event_id} is {processed.status}")
    if not skipped:
        raise StillInProgress(f"{processed.worker} until {processed.lease_expires_at}")
    return processed
