"""The payment events. An id belongs to one occurrence: the same transaction reaching the same state
for the n-th time always has the same event id, so a repeat makes no second event, and another
occurrence does.
"""

from datetime import datetime

from payments.exceptions import EventSwallowed
from payments.models import Payment
from payments.providers.base import GatewayNotification
from skincare.events.outbox import publish
from skincare.events.schema import (
    PAYMENT_FAILED,
    PAYMENT_PROCESSED,
    PAYMENT_REFUNDED,
    PAYMENT_REPORTED,
    Event,
    new_event_id,
)


def processed_event(payment: Payment, *, occurred_at: datetime) -> Event:
    """Return `payment.processed`: the whole amount came in, for the `times_paid`-th time."""
    return _event(
        PAYMENT_PROCESSED,
        payment,
        event_id=_event_id(payment, "paid", payment.times_paid),
        amount_rupiah=payment.amount_rupiah,
        occurred_at=occurred_at,
    )


def failed_event(payment: Payment, *, occurred_at: datetime) -> Event:
    """Return `payment.failed` for the payment's present state: no money came in, or it is lost.

    One attempt failed; that is not the end of its order.
    """
    return _event(
        PAYMENT_FAILED,
        payment,
        event_id=_event_id(payment, payment.status, payment.times_failed),
        amount_rupiah=payment.amount_rupiah,
        occurred_at=occurred_at,
    )


def refunded_event(
    payment: Payment, *, refund_key: str, amount_rupiah: int, occurred_at: datetime
) -> Event:
    """Return `payment.refunded` for one refund of `amount_rupiah`."""
    return _event(
        PAYMENT_REFUNDED,
        payment,
        event_id=new_event_id(payment.provider, _transaction(payment), "refunded", refund_key),
        amount_rupiah=amount_rupiah,
        occurred_at=occurred_at,
    )


def reported_event(payment: Payment, report: GatewayNotification) -> Event:
    """Return `payment.reported`: the gateway has notified something, and has to be asked.

    A notification that is sent again makes the same event, also in a database that was restored to
    an earlier time: one that says no time is as old as its order.
    """
    return _event(
        PAYMENT_REPORTED,
        payment,
        event_id=new_event_id(payment.provider, "reported", report.identity),
        amount_rupiah=payment.amount_rupiah,
        occurred_at=report.occurred_at if report.is_timed else payment.order.created_at,
    )


def publish_once(event: Event) -> None:
    """Publish an event that has to be a new one. Raises `EventSwallowed` where its id is not.

    A publish that wrote nothing would leave the order behind its payment.
    """
    if not publish(event):
        raise EventSwallowed(f"{event.event_type} {event.event_id}")


def _event_id(payment: Payment, state: str, occurrence: int) -> str:
    # The first occurrence has the id that it had before occurrences were counted.
    parts = (payment.provider, _transaction(payment), state)
    return new_event_id(*parts, str(occurrence)) if occurrence > 1 else new_event_id(*parts)


def _transaction(payment: Payment) -> str:
    # Another producer can report a payment before its gateway does.
    return payment.transaction_id or str(payment.pk)


def _event(
    event_type: str,
    payment: Payment,
    *,
    event_id: str,
    amount_rupiah: int,
    occurred_at: datetime,
) -> Event:
    # The gateway's time, not ours: whoever makes this event again makes the same document.
    return Event(
        event_id=event_id,
        event_type=event_type,
        order_id=str(payment.order_id),
        payment_id=str(payment.id),
        user_id=payment.order.user_id,
        amount_rupiah=amount_rupiah,
        created_at=occurred_at.isoformat(),
    )
