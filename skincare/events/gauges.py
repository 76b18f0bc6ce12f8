"""How far the outbox is behind, reported as metrics by every relay."""

from typing import Final

from django.db import connection

from skincare.telemetry import metrics

EVERY_SECONDS: Final = 60.0  # CloudWatch's shortest period without extra cost

#: A row that is sent again waits since then, as long as it has not failed: `outbox.resend` says so.
_BACKLOG: Final = """
SELECT count(*),
       COALESCE(EXTRACT(EPOCH FROM clock_timestamp() - min(
           CASE WHEN send_attempts = 0 THEN next_attempt_at ELSE created_at END)), 0)
FROM events_outboxevent
WHERE sent_at IS NULL
"""


def report_backlog() -> None:
    """Report OutboxUnsent, and OutboxOldestAgeSeconds, which is 0 where nothing waits."""
    with connection.cursor() as cursor:
        cursor.execute(_BACKLOG)
        unsent, oldest_age = cursor.fetchone()
    metrics.record(
        {"OutboxUnsent": unsent, "OutboxOldestAgeSeconds": max(round(float(oldest_age), 1), 0.0)}
    )
