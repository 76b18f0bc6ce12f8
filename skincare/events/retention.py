"""How long rows are kept, and their deletion in batches that lock nobody out.

A finished event's row makes a late repeat harmless, so it goes last: after its outbox row, and
later than any queue could still hold its message. What is not finished is never deleted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from skincare.events.models import OutboxEvent, ProcessedEvent


@dataclass(frozen=True)
class Rule:
    """One kind of rows: `rows` returns those older than a moment, oldest first.

    `setting` names the days in the settings. `permit` is a setting of the database that a
    transaction sets to "on" before it may delete from an append-only table.
    """

    name: str
    setting: str
    rows: Callable[[datetime], QuerySet[Any]]
    permit: str = ""

    @property
    def days(self) -> int:
        return getattr(settings, self.setting)

    def expired(self) -> QuerySet[Any]:
        """Return the rows that may go now, by the database's clock."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT statement_timestamp()")
            (now,) = cursor.fetchone()
        return self.rows(now - timedelta(days=self.days))


def delete_expired(rule: Rule, *, batch: int) -> Iterator[int]:
    """Delete what the rule lets go, `batch` rows in each transaction; yield each batch's number.

    Rows that somebody has locked are left for the next time.
    """
    rows = rule.expired()
    while True:
        with transaction.atomic():
            if rule.permit:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT set_config(%s, 'on', true)", [rule.permit])
            free = rows.select_for_update(skip_locked=True, of=("self",))
            ids = list(free.values_list("pk", flat=True)[:batch])
            if ids:
                rows.model.objects.filter(pk__in=ids).delete()
        if not ids:
            return
        yield len(ids)


def _outbox(before: datetime) -> QuerySet[Any]:
    finished = ProcessedEvent.objects.filter(
        event_id=OuterRef("event_id"), status__in=ProcessedEvent.FINISHED
    )
    # The outbox row of an event that never ended may be its only copy.
    return OutboxEvent.objects.filter(Exists(finished), sent_at__lt=before).order_by("sent_at")


def _processed(before: datetime) -> QuerySet[Any]:
    published = OutboxEvent.objects.filter(event_id=OuterRef("event_id"))
    ended = ProcessedEvent.objects.filter(~Exists(published), finished_at__lt=before)
    return ended.order_by("finished_at")


RULES: Final = (
    Rule("sent outbox rows", "PRUNE_OUTBOX_DAYS", _outbox),
    Rule("processed events", "PRUNE_PROCESSED_EVENTS_DAYS", _processed),
)
