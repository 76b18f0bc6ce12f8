"""What persons decide about a hold: accept or refund the money, cancel the order, or dismiss it.

What makes sense is a question of the hold's kind (`payments.hold_codes.DECISIONS`). Accepting
credits money that the rules would not, and refunding gives money away, so each takes two persons:
one asks, another one accepts. Every decision closes at most its own hold, leaves an audit entry,
and ends in `align`.
"""

from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.utils import timezone

from orders.locks import lock_order
from orders.models import Order
from payments.alignment import align, payments_of
from payments.apply import (
    apply_by_decision,
    brings_back,
    record_refund_by_hand,
    record_reversal,
)
from payments.cancelling import give_up
from payments.exceptions import AlreadyRequested, CannotDecide, NotRequested, SamePerson
from payments.hold_codes import DECISIONS, FOUR_EYES, Decision, HoldCode
from payments.holds import close_hold, lock_hold
from payments.models import Acceptance, Hold
from payments.refunding import refund_held
from payments.standing import standing
from payments.status import REFUND, PaymentStatus
from payments.transitions import Duplicate, Stale, next_status
from skincare.events import audit
from skincare.events.schema import new_event_id

log = structlog.get_logger(__name__)


def offered(hold: Hold) -> list[Decision]:
    """Return what an open hold can be decided with now, in the order of `Decision`."""
    if not hold.is_open:
        return []
    return [
        one for one in Decision if one in DECISIONS[HoldCode(hold.code)] and not _why(hold, one)
    ]


def request_decision(*, hold_id: int, decision: Decision, reason: str, actor: str) -> Acceptance:
    """Ask that money be accepted or refunded. Changes nothing yet.

    `actor` is the person who asks. Raises `NotHeld`, `AlreadyRequested`, `CannotDecide`,
    `ReasonMissing` and `UnknownActor`.
    """
    audit.check_reason(reason)
    with transaction.atomic():
        _, hold = lock_hold(hold_id)
        _check(hold, decision)
        if decision not in FOUR_EYES or hold.payment is None:
            raise CannotDecide(f"{decision} needs no second person: decide it")
        open_request = _open_request(hold)
        if open_request is not None:
            raise AlreadyRequested(f"by {open_request.requested_by}")
        request = Acceptance.objects.create(
            payment=hold.payment,
            hold=hold,
            decision=decision,
            held_reason=hold.reason[:255],
            reason=reason,
            requested_by=audit.user_named(actor),
        )
        _note(hold, actor, f"{decision} requested", reason=reason)
    return request


def accept_request(*, hold_id: int, actor: str) -> Hold:
    """Do what another person asked for: take the money as it was reported, or send it back.

    A refund is recorded as decided: the hold stays open until the gateway says that the money is
    gone. Raises `NotHeld`, `NotRequested`, `SamePerson`, `CannotDecide` and `UnknownActor`.
    """
    with transaction.atomic():
        order, hold = lock_hold(hold_id)
        request = _open_request(hold)
        if request is None:
            raise NotRequested(str(hold.pk))
        user = audit.user_named(actor)
        if request.requested_by_id == user.pk:
            raise SamePerson(SamePerson.__doc__)
        decision = Decision(request.decision)
        _check(hold, decision)
        request.accepted_by = user
        request.closed_at = timezone.now()
        request.save()
        if decision is Decision.REFUND:
            hold.refund_decided_at = timezone.now()
            hold.save()
            refund_held(
                hold, requested_by=request.requested_by, agreed_by=user, reason=request.reason
            )
        else:
            close_hold(order, hold, how=decision, reason=request.reason, actor=actor)
            _take_money(order, hold)
        _align(order, hold, decision)
        _note(
            hold,
            actor,
            "accepted" if decision is Decision.ACCEPT else "refund decided",
            reason=request.reason,
            requested_by=request.requested_by.get_username(),
            was_held_for=hold.reason,
        )
    log.info("hold_decided", hold=hold.pk, decision=decision.value, order_id=str(order.pk))
    return hold


def dismiss(*, hold_id: int, reason: str, actor: str) -> Hold:
    """Close one hold without taking what was reported.

    For what was settled elsewhere. Money that the order does not need is recorded as sent back by
    hand, since no order may keep more than it costs; where goods were out of stock, they are taken
    now. Raises `NotHeld`, `CannotDecide`, `ReasonMissing` and `UnknownActor`.
    """
    audit.check_reason(reason)
    with transaction.atomic():
        order, hold = lock_hold(hold_id)
        _check(hold, Decision.DISMISS)
        close_hold(order, hold, how=Decision.DISMISS, reason=reason, actor=actor)
        _send_back_by_hand(order, hold)
        _align(order, hold, Decision.DISMISS)
        if _is_back(hold):
            raise CannotDecide(f"it is as before: {hold.reason}")
        _note(hold, actor, "hold dismissed", reason=reason, was_held_for=hold.reason)
    log.info("hold_decided", hold=hold.pk, decision="dismiss", order_id=str(order.pk))
    return hold


def cancel_order(*, order_id: UUID | str, reason: str, actor: str) -> Order:
    """Give an order up, on behalf of the buyer or the shop.

    An order without money is cancelled and gives its stock back. Money that is in is held: it has
    to be refunded, or the order to be taken after all. Raises `OrderNotFound`, `CannotDecide` and
    `ReasonMissing`.
    """
    audit.check_reason(reason)
    with transaction.atomic():
        order = lock_order(order_id)
        if order.shipped_at is not None and order.returned_at is None:
            raise CannotDecide("its goods are out: take them back first")
        give_up(order)
        align(order, event_id=new_event_id("order.cancelled", str(order.pk)), reason=reason)
        audit.record(actor=actor, action="order cancelled", subject=order, reason=reason)
    return order


def decide_to_cancel(*, hold_id: int, reason: str, actor: str) -> Hold:
    """Cancel the held order, and close the hold where no money is in.

    Money that is in stays held until it is refunded. Raises `NotHeld`, `CannotDecide`,
    `ReasonMissing` and `UnknownActor`.
    """
    audit.check_reason(reason)
    with transaction.atomic():
        order, hold = lock_hold(hold_id)
        _check(hold, Decision.CANCEL)
        give_up(order)
        close_hold(order, hold, how=Decision.CANCEL, reason=reason, actor=actor)
        _align(order, hold, Decision.CANCEL)
        _note(hold, actor, "order cancelled", reason=reason, was_held_for=hold.reason)
    return hold


def _check(hold: Hold, decision: Decision) -> None:
    if decision not in DECISIONS[HoldCode(hold.code)]:
        raise CannotDecide(f"{hold.get_code_display()}: it cannot be decided with {decision}")
    why = _why(hold, decision)
    if why:
        raise CannotDecide(why)


def _why(hold: Hold, decision: Decision) -> str:
    """Return why this decision is not possible now, and what to do; "" where it is."""
    if decision is Decision.REFUND:
        is_in = hold.payment is not None and hold.payment.kept_rupiah > 0
        return "" if is_in else "no money of this payment is in"
    if decision is Decision.CANCEL:
        is_out = hold.order.shipped_at is not None and hold.order.returned_at is None
        return "its goods are out: take them back first" if is_out else ""
    if decision is not Decision.ACCEPT:
        return ""
    if hold.code == HoldCode.SURPLUS:
        found = standing(hold.order.total_rupiah, payments_of(hold.order))
        return "the order is paid already: refund this payment" if found.surplus else ""
    if hold.code in (HoldCode.PAID_AFTER_REFUND, HoldCode.PAID_AFTER_CANCEL):
        return ""
    return _why_not_as_reported(hold)


def _why_not_as_reported(hold: Hold) -> str:
    reported = hold.notification
    if reported is None or not reported.status:
        return "the gateway's word for the state is not known: dismiss it with a reason"
    if reported.status in REFUND:
        return "refunds are recorded only as the gateway reports them: dismiss it with a reason"
    return ""


def _take_money(order: Order, hold: Hold) -> None:
    """Do what accepting means for the hold's kind; the hold is closed."""
    if hold.code == HoldCode.PAID_AFTER_CANCEL:
        order.cancelled_at = None
        order.save(update_fields=["cancelled_at", "updated_at"])
    reported, payment = hold.notification, hold.payment
    if reported is None or payment is None:
        return
    notified = PaymentStatus(reported.status)
    if brings_back(payment, notified):
        record_reversal(payment, key=f"reversal-{hold.pk}", at=timezone.now())
        return
    decision = next_status(PaymentStatus(payment.status), notified)
    if not isinstance(decision, Duplicate | Stale):
        apply_by_decision(payment, reported)


def _send_back_by_hand(order: Order, hold: Hold) -> None:
    payment = hold.payment
    if payment is None or payment.kept_rupiah == 0:
        return
    found = standing(order.total_rupiah, payments_of(order))
    is_surplus = hold.code == HoldCode.SURPLUS and payment.pk in found.surplus
    if is_surplus or hold.code in (HoldCode.PAID_AFTER_REFUND, HoldCode.PAID_AFTER_CANCEL):
        most = found.surplus_rupiah if is_surplus else payment.kept_rupiah
        record_refund_by_hand(
            payment,
            amount_rupiah=min(payment.kept_rupiah, most),
            key=f"by-hand-{hold.pk}",
            at=timezone.now(),
        )


def _is_back(hold: Hold) -> bool:
    """Whether the cause is still there, so that the order is held for it again."""
    same = Hold.objects.filter(order=hold.order, code=hold.code, payment=hold.payment)
    return same.filter(closed_at=None, opened_at__gte=hold.closed_at).exists()


def _align(order: Order, hold: Hold, decision: Decision) -> None:
    event_id = new_event_id("hold", str(hold.pk), decision)
    align(order, event_id=event_id, reason=f"{hold.get_code_display()}: {decision.label}")


def _open_request(hold: Hold) -> Acceptance | None:
    requests = Acceptance.objects.select_related("requested_by")
    return requests.filter(hold=hold, closed_at=None).first()


def _note(hold: Hold, actor: str, action: str, **details: Any) -> None:
    audit.record(actor=actor, action=action, subject=hold.payment or hold.order, **details)
