"""How long notifications are kept. The table is append-only; the permit is how this deletes."""

from datetime import datetime
from typing import Any, Final

from django.db.models import QuerySet

from payments.models import PaymentNotification
from skincare.events.retention import Rule

_Outcome = PaymentNotification.Outcome


def _notifications(before: datetime) -> QuerySet[Any]:
    # Not the unmatched, unreadable and held ones: they wait for a person, or
    # persons decided about them.
    ended = (
        _Outcome.APPLIED,
        _Outcome.REPEATED,
        _Outcome.IGNORED,
        _Outcome.DISMISSED,
        _Outcome.READ,
        _Outcome.TEST,
    )
    old = PaymentNotification.objects.filter(received_at__lt=before, outcome__in=ended)
    return old.order_by("pk")


RULES: Final = (
    Rule(
        "payment notifications",
        "PRUNE_NOTIFICATIONS_DAYS",
        _notifications,
        permit="payments.retention",
    ),
)
