"""Event documents for these tests."""

from typing import Any
from uuid import uuid4

from skincare.events.schema import Event, parse_event


def event_document(**changes: Any) -> dict[str, Any]:
    return {
        "event_id": str(uuid4()),
        "event_type": "payment.processed",
        "order_id": str(uuid4()),
        "payment_id": str(uuid4()),
        "user_id": "guest",
        "amount_rupiah": 150000,
        "created_at": "2026-11-11T00:00:00+07:00",
        **changes,
    }


def new_event(**changes: Any) -> Event:
    return parse_event(event_document(**changes))
