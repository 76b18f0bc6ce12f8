"""Notifications without a payment: a person matches one to its order, or dismisses it.

Those that nobody could read are dismissed here too; `payments.notifications` reads them again.
"""

from collections.abc import Iterable
from uuid import UUID

import structlog
from django.db import transaction

from orders.exceptions import OrderNotFound
from orders.locks import lock_order
from orders.models import Order
from payments.apply import apply_report
from payments.attempts import lock_reported_payment
from payments.exceptions import AnotherOrder, NotUnmatched
from payments.models import Payment, PaymentNotification
from payments.providers.base import GatewayNotification
from payments.status import PaymentStatus
from skincare.events import audit

log = structlog.get_logger(__name__)

_Outcome = PaymentNotification.Outcome


def match(*, notification_id: int, order: str, reason: str, actor: str) -> Payment:
    """Match an unmatched notification to the order with this number or id.

    It pays nothing yet: the payment and the order are held, because the gateway did not name the
    order. `payments.decisions` then accepts what was reported, which takes two persons. Raises
    `NotUnmatched`, `OrderNotFound`, `AnotherOrder` and `ReasonMissing`.
    """
    audit.check_reason(reason)
    with transaction.atomic():
        # Order first, as a webhook does that repeats the notification at this moment.
        found = lock_order(_find(order).pk)
        stored = _lock_open(notification_id, [_Outcome.UNMATCHED])
        reported = _normal_form(stored, order=found, review_reason=f"matched by hand: {reason}")
        payment = lock_reported_payment(reported)
        if payment is None or payment.order_id != found.pk:
            raise AnotherOrder(str(stored))
        applied = apply_report(payment, reported, stored)
        stored.decide(payment=payment, outcome=applied.outcome, reason=applied.reason)
        audit.record(
            actor=actor,
            action="matched to an order",
            subject=stored,
            order=found.number,
            payment=str(payment.pk),
            reason=reason,
        )
    log.info("notification_matched", payment_id=str(payment.pk), order_id=str(found.pk))
    return payment


def dismiss(*, notification_id: int, reason: str, actor: str) -> PaymentNotification:
    """End the wait of an unmatched or unreadable notification: nothing is to be done for it.

    Raises `NotUnmatched` and `ReasonMissing`.
    """
    audit.check_reason(reason)
    with transaction.atomic():
        stored = _lock_open(notification_id, PaymentNotification.OPEN)
        stored.dismiss(reason=f"dismissed: {reason}"[:255])
        audit.record(actor=actor, action="dismissed", subject=stored, reason=reason)
    log.info("notification_dismissed", provider=stored.provider)
    return stored


def _lock_open(notification_id: int, outcomes: Iterable[str]) -> PaymentNotification:
    waiting = PaymentNotification.objects.filter(outcome__in=outcomes)
    stored = waiting.select_for_update().filter(pk=notification_id).first()
    if stored is None:
        raise NotUnmatched(str(notification_id))
    return stored


def _find(order: str) -> Order:
    try:
        found = Order.objects.filter(pk=UUID(order)).first()
    except ValueError:
        found = Order.objects.filter(number=order.strip().upper()).first()
    if found is None:
        raise OrderNotFound(f"there is no order {order}")
    return found


def _normal_form(
    stored: PaymentNotification, *, order: Order, review_reason: str
) -> GatewayNotification:
    """Return what was reported as if it named the order, for review. Its refunds are left out."""
    return GatewayNotification(
        provider=stored.provider,
        identity=stored.identity,
        transaction_id=stored.transaction_id,
        order_reference=str(order.pk),
        status=PaymentStatus(stored.status) if stored.status else None,
        amount=stored.amount,
        currency=stored.currency,
        occurred_at=stored.occurred_at,
        channel=stored.channel,
        review_reason=review_reason,
        is_matched_by_hand=True,
        payload=stored.payload,
    )
