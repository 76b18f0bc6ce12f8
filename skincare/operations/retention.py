"""How long it is kept who tried to log in, and whose sessions are over."""

from datetime import datetime
from typing import Any, Final

from axes.models import AccessAttempt
from django.contrib.sessions.models import Session
from django.db.models import QuerySet

from skincare.events.retention import Rule


def _login_attempts(before: datetime) -> QuerySet[Any]:
    return AccessAttempt.objects.filter(attempt_time__lt=before).order_by("pk")


def _sessions(before: datetime) -> QuerySet[Any]:
    return Session.objects.filter(expire_date__lt=before).order_by("expire_date")


RULES: Final = (
    Rule("login attempts", "PRUNE_LOGINS_DAYS", _login_attempts),
    Rule("ended sessions", "PRUNE_LOGINS_DAYS", _sessions),
)
