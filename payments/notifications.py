"""Receiving what a gateway tells: kept once, applied once, whoever repeats it and when."""

from dataclasses import dataclass

import structlog
from django.conf import settings
from django.db import connection, transaction

from payments.apply import apply_notification
from payments.attempts import lock_reported_payment
from payments.models import PaymentNotification
from payments.providers.base import GatewayNotification

log = structlog.get_logger(__name__)

_Outcome = PaymentNotification.Outcome


@dataclass(frozen=True)
class Received:
    """How a notification ended. `is_repeat`: it had ended before, and nothing was done now."""

    outcome: PaymentNotification.Outcome
    is_repeat: bool

    @property
    def must_come_again(self) -> bool:
        """Whether the gateway must call again: its order is not known yet."""
        return self.outcome is _Outcome.UNMATCHED


def receive(notification: GatewayNotification) -> Received:
    """Keep `notification` and apply it to its payment, in one transaction of its own.

    A repeat changes nothing, unless it was unmatched before: then it is applied now if its order is
    there. Raises django.db.Error where the database does not answer or the order stays locked;
    nothing is stored then.
    """
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            timeout = f"{settings.WEBHOOK_LOCK_TIMEOUT_SECONDS * 1000:.0f}ms"
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [timeout])
        return record(notification)


def record(notification: GatewayNotification) -> Received:
    """Do what `receive` does, inside the caller's transaction."""
    # The insert comes first: of two parallel repeats, the second waits here for the first.
    stored, is_new = _store(notification)
    if not is_new and stored.outcome != _Outcome.UNMATCHED:
        return _ended(stored, is_repeat=True)
    payment = lock_reported_payment(notification)
    if payment is None:
        return _ended(stored, is_repeat=not is_new)
    # Another repeat may have been applied while this one waited for the lock.
    stored.refresh_from_db()
    if stored.outcome != _Outcome.UNMATCHED:
        return _ended(stored, is_repeat=True)
    applied = apply_notification(payment, notification)
    stored.decide(payment=payment, outcome=applied.outcome, reason=applied.reason)
    return _ended(stored, is_repeat=False)


def _store(notification: GatewayNotification) -> tuple[PaymentNotification, bool]:
    """Return the stored notification, and whether it is new. It is unmatched until decided."""
    return PaymentNotification.objects.get_or_create(
        provider=notification.provider,
        identity=notification.identity,
        defaults={
            "transaction_id": notification.transaction_id,
            "order_reference": notification.order_reference,
            "status": notification.status or "",
            "amount": notification.amount,
            "currency": notification.currency,
            "channel": notification.channel,
            "occurred_at": notification.occurred_at,
            "payload": dict(notification.payload),
            "outcome": _Outcome.UNMATCHED,
        },
    )


def _ended(stored: PaymentNotification, *, is_repeat: bool) -> Received:
    outcome = _Outcome(stored.outcome)
    known = stored.payment
    logged = log.warning if outcome in (_Outcome.HELD, _Outcome.UNMATCHED) else log.info
    logged(
        "notification_received",
        provider=stored.provider,
        transaction_id=stored.transaction_id,
        order_reference=stored.order_reference,
        notified_status=stored.status,
        outcome=outcome.value,
        reason=stored.reason,
        repeat=is_repeat,
        payment_id=str(known.pk) if known else "",
        order_id=str(known.order_id) if known else "",
    )
    return Received(outcome=outcome, is_repeat=is_repeat)
