"""Money back: one person asks, another one agrees, the gateway sends it, and that is counted once.

What went back is recorded only as the gateway says it. A refund has its own key there, and its
state is read before it is asked for again: an answer that was lost gives nothing back twice. Where
the gateway has no refunds, the order is held until a person says that the money was transferred.
"""

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from orders.models import Order
from payments.alignment import align
from payments.apply import record_refund_by_hand
from payments.exceptions import (
    AlreadyRequested,
    CannotDecide,
    GatewayRefused,
    GatewayUnavailable,
    NotRefundable,
    NotRequested,
    SamePerson,
)
from payments.hold_codes import Decision, HoldCode
from payments.holds import close_hold, open_hold
from payments.locks import lock_payment
from payments.models import Hold, Payment, RefundRequest
from payments.providers import Gateway, provider
from payments.providers.base import RefundState
from payments.reconciliation import ask_now
from skincare.events import audit
from skincare.events.schema import new_event_id

log = structlog.get_logger(__name__)

_Status = RefundRequest.Status
_FIRST_WAIT: Final = timedelta(seconds=30)
_LONGEST_WAIT: Final = timedelta(hours=1)
_LEASE: Final = timedelta(minutes=2)  # longer than the calls of one refund take
_POLL: Final = timedelta(minutes=2)  # Xendit ends a refund later, and its webhook may be lost


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
        _check(payment, amount_rupiah)
        request = _create(
            payment, amount_rupiah, reason=reason, requested_by=audit.user_named(actor)
        )
        _note(request, actor, "refund requested", reason=reason, amount_rupiah=amount_rupiah)
    return request


def agree_to_refund(*, request_id: int, actor: str) -> RefundRequest:
    """Agree to what another person asked for; the gateway is asked for it at once, by the relay.

    Raises `NotRequested`, `SamePerson`, `CannotDecide` and `UnknownActor`.
    """
    with transaction.atomic():
        request, payment = _lock(request_id, _Status.REQUESTED)
        user = audit.user_named(actor)
        if request.requested_by_id == user.pk:
            raise SamePerson(SamePerson.__doc__)
        _check(payment, request.amount_rupiah)
        request.agreed_by, request.agreed_at = user, timezone.now()
        request.status, request.next_try_at = _Status.DECIDED, timezone.now()
        request.save()
        _note(request, actor, "refund agreed", amount_rupiah=request.amount_rupiah)
    log.info("refund_decided", payment_id=str(payment.pk), amount_rupiah=request.amount_rupiah)
    return request


def withdraw_refund(*, request_id: int, reason: str, actor: str) -> RefundRequest:
    """Take back what nobody has agreed to yet. Raises `NotRequested` and `ReasonMissing`."""
    audit.check_reason(reason)
    with transaction.atomic():
        request, _ = _lock(request_id, _Status.REQUESTED)
        request.status = _Status.WITHDRAWN
        request.save()
        _note(request, actor, "refund withdrawn", reason=reason)
    return request


def refund_held(hold: Hold, *, requested_by: Any, agreed_by: Any, reason: str) -> None:
    """Send back the money of a hold for which two persons have decided it; all are locked.

    Raises `AlreadyRequested` where another refund of this payment is under way.
    """
    payment = hold.payment
    if payment is None or not isinstance(provider(payment.provider), Gateway):
        return
    left = payment.amount_rupiah - payment.refunded_rupiah
    if left <= 0:
        return
    request = _create(payment, left, reason=reason, requested_by=requested_by)
    request.agreed_by, request.agreed_at = agreed_by, timezone.now()
    request.status, request.next_try_at = _Status.DECIDED, timezone.now()
    request.save()


def transferred(*, request_id: int, reason: str, actor: str) -> RefundRequest:
    """Record that money which the gateway cannot refund was transferred by hand.

    Two persons have decided the refund; this says that it was done. Raises `NotRequested`,
    `ReasonMissing` and `UnknownActor`.
    """
    audit.check_reason(reason)
    with transaction.atomic():
        request, payment = _lock(request_id, _Status.BY_HAND)
        order = payment.order
        record_refund_by_hand(
            payment, amount_rupiah=request.amount_rupiah, key=request.key, at=timezone.now()
        )
        request.status = _Status.DONE
        request.save()
        holds = Hold.objects.filter(
            order=order, payment=payment, code=HoldCode.TRANSFER_BY_HAND, closed_at=None
        )
        for hold in holds:
            hold.payment = payment
            close_hold(order, hold, how=Decision.DISMISS, reason=reason, actor=actor)
        align(order, event_id=new_event_id("refund", request.key, "transferred"), reason=reason)
        _note(request, actor, "refund transferred by hand", reason=reason)
    return request


def due() -> QuerySet[RefundRequest]:
    """Return the refunds that the gateway has to be asked for, or about, now."""
    requests = RefundRequest.objects.filter(next_try_at__lte=timezone.now())
    return requests.filter(status__in=[_Status.DECIDED, _Status.SENT]).order_by("next_try_at")


def is_due() -> bool:
    """Whether a refund has to be sent, or asked about, now."""
    return due().exists()


def send_due(limit: int = 20) -> int:
    """Send what two persons have decided; return how many refunds have ended."""
    ended = 0
    for request in list(due()[:limit]):
        try:
            ended += _send(request)
        except Exception:
            # It is asked about again when its lease is over; the others must not wait for it.
            log.exception("refund_failed", refund=request.pk)
    return ended


def _send(request: RefundRequest) -> bool:
    """Ask for one refund, or how it stands. Several senders may run: each leases it first."""
    free = RefundRequest.objects.filter(pk=request.pk, next_try_at=request.next_try_at)
    if not free.update(next_try_at=timezone.now() + _LEASE, tries=request.tries + 1):
        return False
    payment = Payment.objects.get(pk=request.payment_id)
    try:
        state = _ask(request, payment)
    except GatewayUnavailable as error:
        _later(request, str(error))
        return False
    except NotRefundable as refusal:
        _end(request, _Status.BY_HAND, error=refusal.reason)
        return True
    except GatewayRefused as refusal:
        _end(request, _Status.FAILED, error=refusal.reason)
        return True
    if state.status == "pending":
        _later(request, "", status=_Status.SENT, gateway_key=state.key, wait=_POLL)
        return False
    done = state.status == "succeeded"
    _end(request, _Status.DONE if done else _Status.FAILED, error=state.reason, key=state.key)
    if done:
        ask_now(payment)  # what went back is what the gateway says
    return True


def _ask(request: RefundRequest, payment: Payment) -> RefundState:
    """Read the refund's state before it is asked for again."""
    gateway = provider(payment.provider)
    if request.tries:
        found = gateway.find_refund(payment, key=request.key)
        if found is not None:
            return found
    return gateway.refund(
        payment, key=request.key, amount_rupiah=request.amount_rupiah, reason=request.reason
    )


def _later(
    request: RefundRequest,
    error: str,
    *,
    status: str = "",
    gateway_key: str = "",
    wait: timedelta | None = None,
) -> None:
    backoff = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(request.tries, 10))
    RefundRequest.objects.filter(pk=request.pk).update(
        next_try_at=timezone.now() + (wait or backoff),
        last_error=error[:255],
        status=status or request.status,
        gateway_key=gateway_key or request.gateway_key,
    )


def _end(request: RefundRequest, status: str, *, error: str = "", key: str = "") -> None:
    with transaction.atomic():
        payment = lock_payment(request.payment_id)
        order = payment.order
        RefundRequest.objects.filter(pk=request.pk).update(
            status=status,
            next_try_at=None,
            last_error=error[:255],
            gateway_key=key or request.gateway_key,
        )
        if status in (_Status.BY_HAND, _Status.FAILED):
            _hold(order, payment, request, status, error)
    log.info("refund_ended", payment_id=str(payment.pk), refund_status=status, reason=error)


def _hold(order: Order, payment: Payment, request: RefundRequest, status: str, error: str) -> None:
    what = (
        "the gateway has no refunds for it: transfer it by hand"
        if status == _Status.BY_HAND
        else "its refund failed at the gateway"
    )
    reason = f"{request.amount_rupiah} rupiah have to go back, and {what} ({error})"
    open_hold(order, HoldCode.TRANSFER_BY_HAND, reason, payment=payment)


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


def _check(payment: Payment, amount_rupiah: int) -> None:
    left = payment.amount_rupiah - payment.refunded_rupiah
    if not payment.is_paid or left <= 0:
        raise CannotDecide("no money of this payment is in")
    if not 0 < amount_rupiah <= left:
        raise CannotDecide(f"it can be 1 to {left} rupiah")
    if not isinstance(provider(payment.provider), Gateway):
        raise CannotDecide(f"{payment.provider} has no refunds")


def _lock(request_id: int, status: str) -> tuple[RefundRequest, Payment]:
    found = RefundRequest.objects.filter(pk=request_id).first()
    if found is None:
        raise NotRequested(str(request_id))
    payment = lock_payment(found.payment_id)
    request = RefundRequest.objects.select_for_update().get(pk=request_id)
    if request.status != status:
        raise NotRequested(f"it is {request.get_status_display()}")
    request.payment = payment
    return request, payment


def _note(request: RefundRequest, actor: str, action: str, **details: Any) -> None:
    audit.record(actor=actor, action=action, subject=request.payment, **details)
