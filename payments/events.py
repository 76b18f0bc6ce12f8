"""The payment events: their ids never change for one cause, so a repeat makes no second event."""

from datetime import datetime

from payments.models import Payment
from skincare.events.schema import (
    PAYMENT_FAILED,
    PAYMENT_PROCESSED,
    PAYMENT_REFUNDED,
    Event,
    new_event_id,
)


def processed_event(payment: Payment, *, occurred_at: datetime) -> Event:
    """Return `payment.processed`: the whole amount came in. A payment has one at most."""
    return _event(
        PAYMENT_PROCESSED,
        payment,
        event_id=processed_event_id(payment),
        amount_rupiah=payment.amount_rupiah,
        occurred_at=occurred_at,
    )


def processed_event_id(payment: Payment) -> str:
    """Return the id of the payment's `payment.processed`, sent or not."""
    return new_event_id(payment.provider, _transaction(payment), "paid")


def failed_event(payment: Payment, *, occurred_at: datetime) -> Event:
    """Return `payment.failed` for the payment's present state: no money came in, or it is lost."""
    return _event(
        PAYMENT_FAILED,
        payment,
        event_id=new_event_id(payment.provider, _transaction(payment), payment.status),
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


def _transaction(payment: Payment) -> str:
    # Another producer can tell of a payment before its gateway does.
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
