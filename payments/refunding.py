"""Money back: one person asks for it and another one agrees. What then moves it is elsewhere: the
gateway (`payments.refund_sending`), or a person by hand (`payments.transfers`).

What went back is recorded only as the gateway says it, or as two persons say it.
"""

from typing import Any
from uuid import UUID

import structlog
from django.db import IntegrityError, transaction
from django.utils import timezone

from payments.exceptions import AlreadyRequested, CannotDecide, NotRequested, SamePerson
from payments.locks import lock_payment
from payments.models import Hold, Payment, RefundRequest
from payments.providers import Gateway, provider
from skincare.events import audit

log = structlog.get_logger(__name__)

_Status = RefundRequest.Status


def request_refund(
    *, payment_id: UUID | str, amount_rupiah: int, reason: str, actor: str
) -> RefundRequest:
    """Ask that `amount_rupiah` of a payment go back. Changes nothing yet.

    Raises `PaymentNotFound`, `CannotDecide`, `AlreadyRequested`, `ReasonMissing` and
    `UnknownActor`.
    """
    audit.check_reason(reason)
    with transaction.atomic():
        payment = lock_payment(payment_id)
        check_amount(payment, amount_rupiah)
        request = _create(
            payment, amount_rupiah, reason=reason, requested_by=audit.user_named(actor)
        )
        note(request, actor, "refund requested", reason=reason, amount_rupiah=amount_rupiah)
    return request


def agree_to_refund(*, request_id: int, actor: str) -> RefundRequest:
    """Agree to what another person asked for; the gateway is asked for it at once, by the relay.

    Raises `NotRequested`, `SamePerson`, `CannotDecide` and `UnknownActor`.
    """
    with transaction.atomic():
        request, payment = lock_request(request_id, _Status.REQUESTED)
        user = audit.user_named(actor)
        if request.requested_by_id == user.pk:
            raise SamePerson(SamePerson.__doc__)
        check_amount(payment, request.amount_rupiah)
        _decide(request, agreed_by=user)
        note(request, actor, "refund agreed", amount_rupiah=request.amount_rupiah)
    log.info("refund_decided", payment_id=str(payment.pk), amount_rupiah=request.amount_rupiah)
    return request


def withdraw_refund(*, request_id: int, reason: str, actor: str) -> RefundRequest:
    """Take back what nobody has agreed to yet. Raises `NotRequested` and `ReasonMissing`."""
    audit.check_reason(reason)
    with transaction.atomic():
        request, _ = lock_request(request_id, _Status.REQUESTED)
        request.status = _Status.WITHDRAWN
        request.save()
        note(request, actor, "refund withdrawn", reason=reason)
    return request


def refund_held(hold: Hold, *, requested_by: Any, agreed_by: Any, reason: str) -> None:
    """Send back the money of a hold for which two persons have decided it; all are locked.

    Raises `AlreadyRequested` where another refund of this payment is under way.
    """
    payment = hold.payment
    if payment is None or not isinstance(provider(payment.provider), Gateway):
        return
    if payment.kept_rupiah == 0:
        return
    request = _create(payment, payment.kept_rupiah, reason=reason, requested_by=requested_by)
    _decide(request, agreed_by=agreed_by)


def why_not_refundable(payment: Payment) -> str:
    """Return why nothing of this payment can go back now; "" where something can."""
    if payment.kept_rupiah == 0:
        return "no money of this payment is in"
    if not isinstance(provider(payment.provider), Gateway):
        return f"{payment.provider} has no refunds"
    return ""


def check_amount(payment: Payment, amount_rupiah: int) -> None:
    """Raise `CannotDecide` where so much of the payment cannot go back."""
    if why_not := why_not_refundable(payment):
        raise CannotDecide(why_not)
    if not 0 < amount_rupiah <= payment.kept_rupiah:
        raise CannotDecide(f"it can be 1 to {payment.kept_rupiah} rupiah")


def lock_request(request_id: int, *statuses: str) -> tuple[RefundRequest, Payment]:
    """Return a request in one of these states and its payment, locked. Raises `NotRequested`."""
    found = RefundRequest.objects.filter(pk=request_id).first()
    if found is None:
        raise NotRequested(str(request_id))
    payment = lock_payment(found.payment_id)
    request = RefundRequest.objects.select_for_update(no_key=True).get(pk=request_id)
    if request.status not in statuses:
        raise NotRequested(f"it is {request.get_status_display()}")
    request.payment = payment
    return request, payment


def note(request: RefundRequest, actor: str, action: str, **details: Any) -> None:
    """Write to the audit log, at the payment, what a person did about its refund."""
    audit.record(actor=actor, action=action, subject=request.payment, **details)


def _create(
    payment: Payment, amount_rupiah: int, *, reason: str, requested_by: Any
) -> RefundRequest:
    number = payment.refund_requests.count() + 1
    try:
        with transaction.atomic():
            return RefundRequest.objects.create(
                payment=payment,
                key=f"r{number}-{payment.pk}",
                amount_rupiah=amount_rupiah,
                reason=reason[:255],
                requested_by=requested_by,
            )
    except IntegrityError:
        raise AlreadyRequested("a refund of this payment is under way") from None


def _decide(request: RefundRequest, *, agreed_by: Any) -> None:
    request.agreed_by, request.agreed_at = agreed_by, timezone.now()
    request.status, request.next_try_at = _Status.DECIDED, timezone.now()
    request.save()
