"""How far the outbox is behind, reported as metrics by every relay."""

from typing import Final

from django.db import connection

from skincare.telemetry import metrics

EVERY_SECONDS: Final = 60.0  # CloudWatch's shortest period without extra cost

#: A row that is sent again waits since then, as long as it has not failed: `outbox.resend` says so.
_BACKLOG: Final = """
SELECT count(*) FILTER (WHERE send_attempts > 0 OR next_attempt_at <= clock_timestamp()),
       COALESCE(EXTRACT(EPOCH FROM clock_timestamp() - min(
           CASE WHEN send_attempts = 0 THEN next_attempt_at ELSE created_at END)), 0)
FROM events_outboxevent
WHERE sent_at IS NULL
"""

#: The email that waits longest counts since its first try.
_PUT_OFF: Final = """
SELECT count(*), COALESCE(EXTRACT(EPOCH FROM clock_timestamp() - min(put_off_since)), 0)
FROM events_processedevent
WHERE put_off_until IS NOT NULL
"""


def report_backlog() -> None:
    """Report what is due to be sent, and the emails that wait for their provider.

    OutboxUnsent and EmailsWaiting are counts, OutboxOldestAgeSeconds and EmailOldestWaitSeconds are
    0 where nothing waits.
    """
    with connection.cursor() as cursor:
        cursor.execute(_BACKLOG)
        unsent, oldest_age = cursor.fetchone()
        cursor.execute(_PUT_OFF)
        waiting, longest_wait = cursor.fetchone()
    metrics.record(
        {
            "OutboxUnsent": unsent,
            "OutboxOldestAgeSeconds": max(round(float(oldest_age), 1), 0.0),
            "EmailsWaiting": waiting,
            "EmailOldestWaitSeconds": max(round(float(longest_wait), 1), 0.0),
        }
    )
