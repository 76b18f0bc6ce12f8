"""Events that were sent and never claimed: their messages are gone, and they are sent again.

A purge, the queue's retention or a deletion by hand takes messages away without a word. The claim
makes it harmless where one was only late.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

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

log = structlog.get_logger(__name__)

EVERY_SECONDS: Final = 300.0
#: Events of one sweep; the next one goes on.
_LIMIT: Final = 500

#: Sent longer ago than any receive can explain. What a person has discarded stays away.
_UNCLAIMED: Final = """
SELECT event_id, sent_at FROM events_outboxevent AS sent
WHERE sent_at >= %(since)s
  AND sent_at < statement_timestamp() - make_interval(secs => %(explained)s)
  AND NOT EXISTS (SELECT FROM events_processedevent AS seen WHERE seen.event_id = sent.event_id)
  AND NOT EXISTS (
      SELECT FROM django_admin_log AS entry
      JOIN django_content_type AS type ON type.id = entry.content_type_id
      WHERE type.app_label = 'events' AND type.model = 'outboxevent'
        AND entry.object_id = sent.id::text AND entry.change_message LIKE %(discarded)s)
ORDER BY sent_at LIMIT %(limit)s
"""

#: When the last event was sent that was claimed so long ago: what was sent before it, and is not
#: claimed, is not waiting in the queue. An event that was sent again after its claim says nothing.
_CLAIMED_SINCE: Final = """
SELECT sent.sent_at FROM events_outboxevent AS sent
JOIN events_processedevent AS seen USING (event_id)
WHERE sent.sent_at IS NOT NULL AND seen.first_claimed_at >= sent.sent_at
  AND seen.first_claimed_at < statement_timestamp() - make_interval(secs => %(explained)s)
ORDER BY sent.sent_at DESC LIMIT 1
"""

_RESEND: Final = """
UPDATE events_outboxevent AS sent
SET sent_at = NULL, send_attempts = 0, next_attempt_at = clock_timestamp(), leased_until = NULL,
    last_error = ''
WHERE event_id = ANY(%(event_ids)s)
  AND sent_at < statement_timestamp() - make_interval(secs => %(explained)s)
  AND NOT EXISTS (SELECT FROM events_processedevent AS seen WHERE seen.event_id = sent.event_id)
RETURNING event_id
"""


def explained_seconds(policy: SQSPolicy) -> float:
    """Return for how long a message can go from receive to receive without a claim."""
    waits = sum(policy.backoff) * (1 + policy.backoff_jitter)
    return policy.max_receive_count * policy.visibility_timeout + waits


@dataclass
class Sweep:
    """Finds the lost events. What was sent up to `since` is known to be claimed."""

    since: datetime | None = None

    def run(self) -> list[str]:
        """Send events again that were sent, never claimed, and are in no queue; return their ids.

        Raises django.db.Error. Where SQS cannot be asked nothing is sent again.
        """
        explained = explained_seconds(settings.SQS_POLICY)
        unclaimed = self._unclaimed(explained)
        if not unclaimed:
            return []
        try:
            lost = [event_id for event_id, _ in self._not_queued(unclaimed, explained)]
            if lost:
                dead = _in_dead_letter_queue()
                lost = [event_id for event_id in lost if event_id not in dead]
        except (Unreachable, NoDeadLetterQueue) as error:
            log.warning("unclaimed_events_not_checked", error=type(error).__name__)
            return []
        return _resend(lost, explained) if lost else []

    def _unclaimed(self, explained: float) -> list[tuple[str, datetime]]:
        parameters: dict[str, Any] = {
            "since": self.since or EARLIEST,
            "explained": explained,
            "discarded": f"{DISCARDED}%",
            "limit": _LIMIT,
        }
        with connection.cursor() as cursor:
            cursor.execute("SELECT statement_timestamp() - make_interval(secs => %s)", [explained])
            (until,) = cursor.fetchone()
            cursor.execute(_UNCLAIMED, parameters)
            found = cursor.fetchall()
        # The next sweep looks again at the first that is not claimed, and at nothing before it.
        self.since = found[0][1] if found else until
        return found

    def _not_queued(
        self, unclaimed: list[tuple[str, datetime]], explained: float
    ) -> list[tuple[str, datetime]]:
        with answered():
            queued = depth(sqs_client(), settings.ORDER_EVENTS_QUEUE_URL)
        if not sum(queued):
            return unclaimed
        with connection.cursor() as cursor:
            cursor.execute(_CLAIMED_SINCE, {"explained": explained})
            row: tuple[datetime] | None = cursor.fetchone()
        return [one for one in unclaimed if row is not None and one[1] < row[0]]


def _in_dead_letter_queue() -> set[str]:
    """Return the ids of the events whose messages a person can see there."""
    queue = open_dead_letter_queue()
    found: set[str] = set()
    if not sum(queue.depth()):
        return found
    for messages in queue.walk():
        for message in messages:
            try:
                call = decode(message.body, adapt)
            except InvalidMessage:
                continue
            documents = [one for one in (*call.args, *call.kwargs.values()) if type(one) is dict]
            found |= {str(document.get("event_id")) for document in documents}
    return found


def _resend(event_ids: list[str], explained: float) -> list[str]:
    parameters: dict[str, Any] = {"event_ids": event_ids, "explained": explained}
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_RESEND, parameters)
            resent = [event_id for (event_id,) in cursor.fetchall()]
        transaction.on_commit(relay.wake)
    for event_id in resent:
        log.error("event_never_claimed", event_id=event_id)
    if resent:
        metrics.record({"EventsNeverClaimed": len(resent)})
    return resent


_sweep: Final = Sweep()


def resend_unclaimed() -> None:
    """Do one sweep; the relays' job."""
    _sweep.run()
