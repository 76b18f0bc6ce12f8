"""Money that a gateway cannot refund, transferred by hand: one person says that it was done, and
another one, who has seen it on the bank's statement, confirms it. Only then is it recorded.
"""

from typing import Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from payments.alignment import align
from payments.apply import record_refund_by_hand
from payments.exceptions import AlreadyRequested, NotRequested, SamePerson
from payments.hold_codes import Decision, HoldCode
from payments.holds import close_hold
from payments.models import Hold, Payment, RefundRequest
from payments.refunding import check_amount, lock_request, note
from skincare.events import audit
from skincare.events.schema import new_event_id

_Status = RefundRequest.Status
#: A refund that failed at the gateway may be transferred instead.
TO_TRANSFER: Final = (_Status.BY_HAND, _Status.FAILED)


def tell_transfer(*, request_id: int, reason: str, actor: str) -> RefundRequest:
    """Say that the money of a refund was transferred by hand, and how (the bank's reference).

    Records nothing yet: another person has to confirm it. Told again, it corrects what was said.
    Raises `NotRequested`, `CannotDecide`, `AlreadyRequested` where another refund of the payment is
    under way, `ReasonMissing` and `UnknownActor`.
    """
    audit.check_reason(reason)
    with transaction.atomic():
        request, payment = lock_request(request_id, *TO_TRANSFER)
        check_amount(payment, request.amount_rupiah)
        request.status = _Status.BY_HAND
        request.transferred_by = audit.user_named(actor)
        request.transferred_at = timezone.now()
        request.transfer_note = reason[:255]
        try:
            with transaction.atomic():
                request.save()
        except IntegrityError:
            raise AlreadyRequested("another refund of this payment is under way") from None
        note(request, actor, "transfer by hand told", reason=reason)
    return request


def confirm_transfer(*, request_id: int, actor: str) -> RefundRequest:
    """Confirm what another person transferred; it is recorded as gone, and its hold ends.

    Raises `NotRequested`, `SamePerson`, `CannotDecide` and `UnknownActor`.
    """
    with transaction.atomic():
        request, payment = lock_request(request_id, _Status.BY_HAND)
        if request.transferred_by_id is None:
            raise NotRequested("nobody has said that it was transferred")
        if request.transferred_by_id == audit.user_named(actor).pk:
            raise SamePerson(SamePerson.__doc__)
        check_amount(payment, request.amount_rupiah)
        _record(request, payment, actor)
        note(request, actor, "transfer by hand confirmed", reason=request.transfer_note)
    return request


def _record(request: RefundRequest, payment: Payment, actor: str) -> None:
    order = payment.order
    # Not the key that the gateway got: what it gives back under that one went back once more.
    key = f"by-hand-{request.key}"
    record_refund_by_hand(payment, amount_rupiah=request.amount_rupiah, key=key, at=timezone.now())
    request.status = _Status.DONE
    request.transfer_confirmed_by = audit.user_named(actor)
    request.save()
    holds = Hold.objects.filter(
        order=order, payment=payment, code=HoldCode.TRANSFER_BY_HAND, closed_at=None
    )
    for hold in holds:
        hold.payment = payment
        close_hold(order, hold, how=Decision.REFUND, reason=request.transfer_note, actor=actor)
    event_id = new_event_id("refund", request.key, "transferred")
    align(order, event_id=event_id, reason=request.transfer_note)
