"""Held payments: a person asks that one be taken as reported, another accepts; or it is dismissed.

Accepting credits money that the rules would not, so it takes two persons.
"""

from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.utils import timezone

from orders import holds
from orders.exceptions import NotHeld
from payments.apply import apply_by_decision
from payments.events import processed_event_id
from payments.exceptions import (
    AlreadyRequested,
    CannotAccept,
    NotRequested,
    SamePerson,
)
from payments.locks import lock_payment
from payments.models import Acceptance, Payment, PaymentNotification
from payments.status import PAID, REFUND, PaymentStatus
from payments.transitions import Duplicate, Stale, next_status
from skincare.events import audit
from skincare.events.exceptions import ReasonMissing
from skincare.events.models import OutboxEvent, ProcessedEvent

log = structlog.get_logger(__name__)


def request_acceptance(*, payment_id: UUID | str, reason: str, user: Any) -> Acceptance:
    """Ask that a held payment be taken as its gateway reported it. Changes nothing yet.

    `user` is the person who asks. Raises `PaymentNotFound`, `NotHeld`, `AlreadyRequested`,
    `CannotAccept` and `ReasonMissing`.
    """
    if not reason.strip():
        raise ReasonMissing(ReasonMissing.__doc__)
    with transaction.atomic():
        payment = _lock_held(payment_id)
        open_request = _open_request(payment)
        if open_request is not None and open_request.held_reason == payment.held_reason:
            raise AlreadyRequested(f"by {open_request.requested_by}")
        _check_acceptable(payment, what_was_reported(payment))
        _close_requests(payment)
        request = Acceptance.objects.create(
            payment=payment, held_reason=payment.held_reason, reason=reason, requested_by=user
        )
        _note(payment, user, "acceptance requested", reason=reason)
    return request


def accept(*, payment_id: UUID | str, user: Any) -> Payment:
    """Take a held payment as its gateway reported it, and end its hold and that of its order.

    Money that came in pays the order; where the payment's state needs no change (such as an order
    paid twice), only the hold ends. Raises `PaymentNotFound`, `NotHeld`, `NotRequested`,
    `SamePerson` and `CannotAccept`.
    """
    with transaction.atomic():
        payment = _lock_held(payment_id)
        request = _open_request(payment)
        if request is None or request.held_reason != payment.held_reason:
            raise NotRequested(str(payment.pk))
        if request.requested_by_id == user.pk:
            raise SamePerson(SamePerson.__doc__)
        reported = what_was_reported(payment)
        _check_acceptable(payment, reported)
        request.accepted_by = user
        request.closed_at = timezone.now()
        request.save()
        _end_hold(payment)
        if reported is not None and _changes(payment, reported):
            apply_by_decision(payment, reported)
        _note(
            payment,
            user,
            "accepted",
            reason=request.reason,
            requested_by=request.requested_by.get_username(),
            was_held_for=request.held_reason,
        )
    log.info("payment_accepted", payment_id=str(payment.pk), status=payment.status)
    return payment


def dismiss(*, payment_id: UUID | str, reason: str, user: Any) -> Payment:
    """End the hold of a payment, and of its order for it, without taking what was reported.

    For what was settled elsewhere, such as money that was sent back by hand. The payment's state
    stays as it is. Raises `PaymentNotFound`, `NotHeld` and `ReasonMissing`.
    """
    if not reason.strip():
        raise ReasonMissing(ReasonMissing.__doc__)
    with transaction.atomic():
        payment = _lock_held(payment_id)
        held = payment.held_reason
        _close_requests(payment)
        _end_hold(payment)
        _note(payment, user, "hold dismissed", reason=reason, was_held_for=held)
    log.info("payment_hold_dismissed", payment_id=str(payment.pk), status=payment.status)
    return payment


def what_was_reported(payment: Payment) -> PaymentNotification | None:
    """Return the notification that the payment is held for; None where it is held otherwise."""
    held = payment.notifications.filter(
        outcome=PaymentNotification.Outcome.HELD, reason=payment.held_reason
    )
    return held.order_by("-decided_at", "-id").first()


def _lock_held(payment_id: UUID | str) -> Payment:
    payment = lock_payment(payment_id)
    if not payment.is_held:
        raise NotHeld(str(payment_id))
    return payment


def _check_acceptable(payment: Payment, reported: PaymentNotification | None) -> None:
    if reported is None or (reported.status and not _changes(payment, reported)):
        return
    if not reported.status:
        raise CannotAccept(
            "the gateway's word for the state is not known: dismiss it with a reason"
        )
    if reported.status in REFUND:
        raise CannotAccept(
            "refunds are recorded only as the gateway tells them: dismiss it with a reason"
        )
    if reported.status in PAID and not payment.is_paid and _was_reported_as_paid(payment):
        raise CannotAccept(
            "its settlement was processed once and reversed: pay the order with a new payment"
        )


def _changes(payment: Payment, reported: PaymentNotification) -> bool:
    decision = next_status(PaymentStatus(payment.status), PaymentStatus(reported.status))
    return not isinstance(decision, Duplicate | Stale)


def _was_reported_as_paid(payment: Payment) -> bool:
    event_id = processed_event_id(payment)
    return (
        OutboxEvent.objects.filter(event_id=event_id).exists()
        or ProcessedEvent.objects.filter(event_id=event_id).exists()
    )


def _open_request(payment: Payment) -> Acceptance | None:
    requests = Acceptance.objects.select_related("requested_by")
    return requests.filter(payment=payment, closed_at=None).first()


def _close_requests(payment: Payment) -> None:
    Acceptance.objects.filter(payment=payment, closed_at=None).update(closed_at=timezone.now())


def _end_hold(payment: Payment) -> None:
    payment.held_reason = ""
    payment.save()
    holds.drop_reason(payment.order, about=f"payment {payment.pk}: ")


def _note(payment: Payment, user: Any, action: str, **details: Any) -> None:
    audit.record(
        actor=user.get_username(), action=action, subject=payment, name=str(payment), **details
    )
