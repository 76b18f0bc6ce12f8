"""The money of the day: what came in, what went back, what waits for a person."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, QuerySet, Sum
from django.utils import timezone

from payments.models import Payment, PaymentRefund


@dataclass(frozen=True)
class Total:
    """So many payments or refunds, and rupiah in all."""

    count: int
    rupiah: int


@dataclass(frozen=True)
class MoneyToday:
    """`paid` and `refunded` since midnight in the shop's time zone; `held` now, since whenever."""

    paid: Total
    refunded: Total
    held: Total


def money_today() -> MoneyToday:
    """Return the sums. Raises django.db.Error."""
    midnight: datetime = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    return MoneyToday(
        paid=_sum(Payment.objects.filter(paid_at__gte=midnight)),
        refunded=_sum(PaymentRefund.objects.filter(refunded_at__gte=midnight)),
        held=_sum(Payment.objects.exclude(held_reason="")),
    )


def _sum(rows: QuerySet[Any]) -> Total:
    found = rows.aggregate(count=Count("pk"), rupiah=Sum("amount_rupiah"))
    return Total(found["count"], found["rupiah"] or 0)
