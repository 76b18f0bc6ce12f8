"""Send to the gateways what two persons have decided to give back, and learn what became of it.

A refund has its own key at the gateway, and its state is read before it is asked for again: an
answer that was lost gives nothing back twice. Where the gateway has no refunds, or refuses this
one, the order is held for a person.
"""

from datetime import timedelta
from typing import Final

import structlog
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from payments.exceptions import GatewayRefused, GatewayUnavailable, NotRefundable
from payments.hold_codes import HoldCode
from payments.holds import open_hold, reopen_refund_decisions
from payments.locks import lock_payment
from payments.models import Payment, RefundRequest
from payments.providers import provider
from payments.providers.base import RefundState
from payments.reconciliation import ask_now

log = structlog.get_logger(__name__)

_Status = RefundRequest.Status
_FIRST_WAIT: Final = timedelta(seconds=30)
_LONGEST_WAIT: Final = timedelta(hours=1)
_LEASE: Final = timedelta(minutes=2)  # longer than the calls of one refund take
_POLL: Final = timedelta(minutes=2)  # Xendit ends a refund later, and its webhook may be lost
#: From this repeat on, a quarter of an hour after the first try, a refusal is believed. Before, it
#: may be a refusal because the refund was done, which the state does not show yet.
_BELIEVED_FROM: Final = 5


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
        try:
            found = gateway.find_refund(payment, key=request.key)
        except GatewayRefused as refusal:
            # It may have been done: whoever takes it for failed gives the money back once more.
            raise GatewayUnavailable(refusal.provider, refusal.reason) from None
        if found is not None:
            return found
    try:
        return gateway.refund(
            payment, key=request.key, amount_rupiah=request.amount_rupiah, reason=request.reason
        )
    except GatewayRefused as refusal:
        if 0 < request.tries < _BELIEVED_FROM:
            raise GatewayUnavailable(refusal.provider, refusal.reason) from None
        raise


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
        RefundRequest.objects.filter(pk=request.pk).update(
            status=status,
            next_try_at=None,
            last_error=error[:255],
            gateway_key=key or request.gateway_key,
        )
        if status == _Status.BY_HAND:
            what = "the gateway has no refunds for it: transfer it by hand"
            _hold(payment, request, what, error)
        elif status == _Status.FAILED:
            reopen_refund_decisions(payment)
            _hold(payment, request, "its refund failed at the gateway", error)
    log.info("refund_ended", payment_id=str(payment.pk), refund_status=status, reason=error)


def _hold(payment: Payment, request: RefundRequest, what: str, error: str) -> None:
    reason = f"{request.amount_rupiah} rupiah have to go back, and {what} ({error})"
    open_hold(payment.order, HoldCode.TRANSFER_BY_HAND, reason, payment=payment)
