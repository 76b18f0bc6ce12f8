"""How long the answers to Idempotency-Keys are kept."""

from datetime import datetime
from typing import Any, Final

from django.db.models import QuerySet

from orders.models import CheckoutRequest
from skincare.events.retention import Rule


def _checkout_requests(before: datetime) -> QuerySet[Any]:
    return CheckoutRequest.objects.filter(created_at__lt=before).order_by("pk")


RULES: Final = (Rule("checkout requests", "PRUNE_CHECKOUT_REQUESTS_DAYS", _checkout_requests),)
