"""Events whose messages are gone: found by the relays of the API, and sent again.

A purge, the queue's retention or a deletion by hand takes messages away without a word: those of
events that were sent and never claimed, and those of events that were claimed and have not ended.
The claim makes it harmless where one was only late. Only the API's role may look at the
dead-letter queue, whose letters are a person's matter.
"""

import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

import structlog
from django.conf import settings
from django.db import connection, transaction

from skincare.events import relay
from skincare.events.audit import DISCARDED
from skincare.events.moments import EARLIEST
from skincare.events.queue_client import open_dead_letter_queue, sqs_client
from skincare.events.routing import adapt
from skincare.sqs.dead_letters import NoDeadLetterQueue, Unreachable, answered
from skincare.sqs.decoder import InvalidMessage, decode
from skincare.sqs.policy import SQSPolicy
from skincare.sqs.queues import depth
from skincare.telemetry import metrics
from skincare.telemetry.identity import IDENTITY

log = structlog.get_logger(__name__)

EVERY_SECONDS: Final = 300.0
#: Seconds between two searches, where one did not come to what was sent last.
SEARCH_EVERY_SECONDS: Final = 5.0
#: Rows that one statement reads, and statements of one search: 50,000 rows, a tenth of a second of
#: the database. A relay that starts looks at all that was ever sent, ten million in 17 minutes.
_SLICE: Final = 2_000
_SLICES: Final = 25
#: Events of one sweep; the next one goes on.
_LIMIT: Final = 500
#: Seconds for which an event seen as a dead letter is treated as one: a walk hides them all.
_DEAD_FOR: Final = 3_600.0

#: What a person has discarded stays away.
_NOT_DISCARDED: Final = """
NOT EXISTS (
    SELECT FROM django_admin_log AS entry
    JOIN django_content_type AS type ON type.id = entry.content_type_id
    WHERE type.app_label = 'events' AND type.model = '{model}'
      AND entry.object_id = {row}.id::text AND entry.change_message LIKE %(discarded)s)
"""

#: The next of what was sent longer ago than any receive can explain: where it ends, how many they
#: are, and which of them are not claimed.
_SEARCH: Final = """
WITH sent AS MATERIALIZED (
    SELECT id, event_id, sent_at FROM events_outboxevent
    WHERE sent_at >= %(since)s AND (sent_at, id) > (%(since)s, %(after)s)
      AND sent_at < statement_timestamp() - make_interval(secs => %(explained)s)
    ORDER BY sent_at, id LIMIT %(slice)s)
SELECT sent_at, id, (SELECT count(*) FROM sent), ARRAY(
    SELECT event_id FROM sent
    WHERE NOT EXISTS (SELECT FROM events_processedevent AS seen
                      WHERE seen.event_id = sent.event_id))
FROM sent ORDER BY sent_at DESC, id DESC LIMIT 1
"""

#: Of those that a search has found.
_UNCLAIMED: Final = f"""
SELECT event_id, sent_at FROM events_outboxevent AS sent
WHERE event_id = ANY(%(found)s)
  AND sent_at < statement_timestamp() - make_interval(secs => %(explained)s)
  AND NOT EXISTS (SELECT FROM events_processedevent AS seen WHERE seen.event_id = sent.event_id)
  AND {_NOT_DISCARDED.format(model="outboxevent", row="sent")}
ORDER BY sent_at
"""  # noqa: S608  (constants)

#: Claimed longer ago than any receive can explain, not finished, and not sent again since.
_ABANDONED: Final = f"""
SELECT event_id, claimed_at FROM events_processedevent AS seen
WHERE status IN ('failed', 'processing', 'effects_done')
  AND claimed_at < statement_timestamp() - make_interval(secs => %(explained)s)
  AND event_id <> ALL(%(dead)s)
  AND NOT EXISTS (
      SELECT FROM events_outboxevent AS sent
      WHERE sent.event_id = seen.event_id AND (sent.sent_at IS NULL
          OR sent.sent_at >= statement_timestamp() - make_interval(secs => %(explained)s)))
  AND {_NOT_DISCARDED.format(model="processedevent", row="seen")}
ORDER BY claimed_at LIMIT %(limit)s
"""  # noqa: S608  (constants)

#: When the last event was sent that was claimed so long ago: what was sent before it, and is not
#: claimed, is not waiting in the queue. An event that was sent again after its claim says nothing.
#: Read from the last one on, as many as wait in the queue.
_CLAIMED_SINCE: Final = """
SELECT sent.sent_at FROM events_outboxevent AS sent
JOIN events_processedevent AS seen USING (event_id)
WHERE sent.sent_at < statement_timestamp() - make_interval(secs => %(explained)s)
  AND seen.first_claimed_at >= sent.sent_at
  AND seen.first_claimed_at < statement_timestamp() - make_interval(secs => %(explained)s)
ORDER BY sent.sent_at DESC LIMIT 1
"""

_RESEND_UNCLAIMED: Final = """
UPDATE events_outboxevent AS sent
SET sent_at = NULL, send_attempts = 0, next_attempt_at = clock_timestamp(), leased_until = NULL,
    last_error = ''
WHERE event_id = ANY(%(event_ids)s)
  AND sent_at < statement_timestamp() - make_interval(secs => %(explained)s)
  AND NOT EXISTS (SELECT FROM events_processedevent AS seen WHERE seen.event_id = sent.event_id)
RETURNING event_id
"""

#: An event of another producer gets a row in the outbox, too.
_RESEND_ABANDONED: Final = """
INSERT INTO events_outboxevent AS sent
    (event_id, event_type, order_id, payload, created_at, send_attempts, next_attempt_at,
     last_error)
SELECT event_id, event_type, order_id, payload, clock_timestamp(), 0, clock_timestamp(), ''
FROM events_processedevent
WHERE event_id = ANY(%(event_ids)s) AND status IN ('failed', 'processing', 'effects_done')
  AND claimed_at < statement_timestamp() - make_interval(secs => %(explained)s)
ON CONFLICT (event_id) DO UPDATE
SET sent_at = NULL, send_attempts = 0, next_attempt_at = clock_timestamp(), leased_until = NULL,
    last_error = ''
WHERE sent.sent_at < statement_timestamp() - make_interval(secs => %(explained)s)
RETURNING event_id
"""


def explained_seconds(policy: SQSPolicy) -> float:
    """Return for how long a message can go from receive to receive without a claim."""
    waits = sum(policy.backoff) * (1 + policy.backoff_jitter)
    return policy.max_receive_count * policy.visibility_timeout + waits


class _Missing(NamedTuple):
    """An event that no receive explains, and when its message was last known to be there."""

    event_id: str
    seen_at: datetime


@dataclass
class Sweep:
    """Finds the lost events."""

    #: Up to here everything that was sent is claimed, or known as one that is not.
    since: datetime = EARLIEST
    #: Whether the last search ended before it came to what was sent last.
    is_behind: bool = True
    _after: int = 0  # the id of the last row at `since`
    #: Ids of events that were not claimed when they were last looked at.
    _unclaimed: set[str] = field(default_factory=set)
    #: Event ids of dead letters, and until when to treat them so (`time.monotonic()`).
    _dead: dict[str, float] = field(default_factory=dict)

    def run(self) -> list[str]:
        """Send events again that have not ended and are in no queue; return their ids.

        Raises django.db.Error, and where SQS cannot be asked, so that nothing is sent again,
        `skincare.sqs.dead_letters.Unreachable` and `NoDeadLetterQueue`.
        """
        now = time.monotonic()
        self._dead = {event_id: until for event_id, until in self._dead.items() if until > now}
        self.search()
        unclaimed = self._still_unclaimed()[:_LIMIT]
        abandoned = self._ask(_ABANDONED)
        if not unclaimed and not abandoned:
            return []
        explained = explained_seconds(settings.SQS_POLICY)
        unclaimed = _not_queued(unclaimed, explained)
        abandoned = _not_queued(abandoned, explained)
        if unclaimed or abandoned:
            dead = _in_dead_letter_queue()
            self._dead |= dict.fromkeys(dead, now + _DEAD_FOR)
        return _resend(_RESEND_UNCLAIMED, self._without_dead(unclaimed), explained) + _resend(
            _RESEND_ABANDONED, self._without_dead(abandoned), explained
        )

    def search(self) -> None:
        """Read on in what was sent, as far as one search goes. Raises django.db.Error.

        It stops where as many are not claimed as a sweep sends: what comes next may be a backlog of
        the queue, too long to remember.
        """
        self.is_behind = True
        for _ in range(_SLICES):
            enough = len(self._unclaimed - self._dead.keys()) >= _LIMIT
            if enough and len(self._still_unclaimed()) >= _LIMIT:
                return
            with connection.cursor() as cursor:
                cursor.execute(_SEARCH, self._parameters())
                row = cursor.fetchone()
            if row is not None:
                self.since, self._after, count, unclaimed = row
                self._unclaimed |= set(unclaimed)
            if row is None or count < _SLICE:
                self.is_behind = False
                return

    def _still_unclaimed(self) -> list[_Missing]:
        """Look again at what a search has found; return it without the dead letters."""
        found = self._ask(_UNCLAIMED)
        self._unclaimed = {one.event_id for one in found}
        return self._without_dead(found)

    def _without_dead(self, missing: list[_Missing]) -> list[_Missing]:
        return [one for one in missing if one.event_id not in self._dead]

    def _ask(self, query: str) -> list[_Missing]:
        with connection.cursor() as cursor:
            cursor.execute(query, self._parameters())
            return [_Missing(*row) for row in cursor.fetchall()]

    def _parameters(self) -> dict[str, Any]:
        return {
            "since": self.since,
            "after": self._after,
            "slice": _SLICE,
            "explained": explained_seconds(settings.SQS_POLICY),
            "found": list(self._unclaimed),
            "discarded": f"{DISCARDED}%",
            "dead": list(self._dead),
            "limit": _LIMIT,
        }


def _not_queued(missing: list[_Missing], explained: float) -> list[_Missing]:
    if not missing:
        return []
    with answered():
        queued = depth(sqs_client(), settings.ORDER_EVENTS_QUEUE_URL)
    if not sum(queued):
        return missing
    with connection.cursor() as cursor:
        cursor.execute(_CLAIMED_SINCE, {"explained": explained})
        row: tuple[datetime] | None = cursor.fetchone()
    return [one for one in missing if row is not None and one.seen_at < row[0]]


def _in_dead_letter_queue() -> set[str]:
    """Return the ids of the events whose messages a person can see there.

    Raises `Unreachable` also where somebody else looks at them, so that not all are seen.
    """
    queue = open_dead_letter_queue()
    expected = sum(queue.depth())
    found: set[str] = set()
    seen = 0
    for messages in queue.walk() if expected else ():
        seen += len(messages)
        for message in messages:
            try:
                call = decode(message.body, adapt)
            except InvalidMessage:
                continue
            documents = [one for one in (*call.args, *call.kwargs.values()) if type(one) is dict]
            found |= {str(document.get("event_id")) for document in documents}
    if seen < expected:
        raise Unreachable(f"{expected - seen} dead letters are hidden by somebody else")
    return found


def _resend(statement: str, lost: list[_Missing], explained: float) -> list[str]:
    if not lost:
        return []
    event_ids = [one.event_id for one in lost]
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(statement, {"event_ids": event_ids, "explained": explained})
            resent = [event_id for (event_id,) in cursor.fetchall()]
        transaction.on_commit(relay.wake)
    for event_id in resent:
        log.error("event_message_gone", event_id=event_id)
    if resent:
        metrics.record({"EventsNeverClaimed": len(resent)})
    return resent


_sweep: Final = Sweep()


def search_on() -> None:
    """Search, where the last search left something; the job of the API's relays."""
    if IDENTITY.service == "api" and _sweep.is_behind:
        _sweep.search()


def resend_unclaimed() -> None:
    """Do one sweep, and report whether it could be done; the job of the API's relays."""
    if IDENTITY.service != "api":
        return
    try:
        _sweep.run()
    except (Unreachable, NoDeadLetterQueue) as error:
        log.warning("unclaimed_events_not_checked", error=str(error))
        metrics.record({"SweepsFailed": 1})
    else:
        metrics.record({"SweepsFailed": 0})
