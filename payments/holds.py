"""Holds: what is put aside for a person, and how the wait ends.

Each is a row of its own, and closing one closes only that one. Who moves money by it takes a second
person: one asks, another accepts. Every decision ends in `payments.alignment.align`.
"""

import re
from collections import defaultdict
from typing import Final
from uuid import UUID

import structlog
from django.db import transaction
from django.utils import timezone

from orders.exceptions import NotHeld
from orders.locks import lock_order
from orders.models import Order
from payments.hold_codes import Decision, HoldCode
from payments.models import Acceptance, Hold, Payment, PaymentNotification, RefundRequest
from skincare.events import audit
from skincare.telemetry import metrics

log = structlog.get_logger(__name__)

_MAX_REASON = 500
_MAX_SUMMARY = 255  # of the payment's copy
_ABOUT_PAYMENT: Final = re.compile(r"payment (?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}): ")
#: Sentences of the release before this one.
_SENTENCES: Final = (
    ("paid twice", HoldCode.SURPLUS),
    ("charged back", HoldCode.CHARGEBACK),
    ("paid after its reservation", HoldCode.OUT_OF_STOCK),
)


def open_hold(
    order: Order,
    code: HoldCode,
    reason: str,
    *,
    payment: Payment | None = None,
    notification: PaymentNotification | None = None,
) -> Hold:
    """Hold a locked order for a person, for one reason; return the hold that is open for it.

    `payment` is the payment that it is about, `notification` what its gateway reported. The same
    reason twice is one hold.
    """
    adopt(order)
    reason = " ".join(reason.split())[:_MAX_REASON]
    same = Hold.objects.filter(order=order, payment=payment, code=code, closed_at=None)
    known = same.filter(reason=reason).first()
    if known is not None:
        return known
    hold = Hold.objects.create(
        order=order, payment=payment, notification=notification, code=code, reason=reason
    )
    _copy_reasons(order, payment)
    log.warning("order_held", order_id=str(order.pk), code=code.value, reason=reason)
    metrics.count("PaymentsHeld", provider=payment.provider if payment else "")
    return hold


def close_hold(
    order: Order, hold: Hold, *, how: Decision, reason: str, actor: str | None = None
) -> None:
    """Close one hold of a locked order. `actor` is None where its cause went away by itself.

    Raises `UnknownActor`.
    """
    adopt(order)
    hold.closed_at = timezone.now()
    hold.closed_how = how
    hold.closed_by = audit.user_named(actor) if actor else None
    hold.closed_reason = reason
    hold.save()
    Acceptance.objects.filter(hold=hold, closed_at=None).update(closed_at=hold.closed_at)
    if hold.code == HoldCode.TRANSFER_BY_HAND and hold.payment is not None:
        _withdraw_transfer(hold.payment, how)
    _copy_reasons(order, hold.payment)
    log.info(
        "order_hold_changed", order_id=str(order.pk), code=hold.code, how=how, held=order.is_held
    )


def _withdraw_transfer(payment: Payment, how: Decision) -> None:
    """End what was to be transferred by hand: nobody is reminded of it any more."""
    waiting = RefundRequest.objects.filter(payment=payment, status=RefundRequest.Status.BY_HAND)
    why = f"its hold was closed: {how.label}"
    if waiting.update(status=RefundRequest.Status.WITHDRAWN, last_error=why):
        reopen_refund_decisions(payment)


def reopen_refund_decisions(payment: Payment) -> None:
    """Let the open holds of a payment be decided again: the refund that was decided never came."""
    decided = Hold.objects.filter(payment=payment, closed_at=None, refund_decided_at__isnull=False)
    decided.update(refund_decided_at=None)


def lock_hold(hold_id: int) -> tuple[Order, Hold]:
    """Return an open hold and its order, both locked. Raises `NotHeld`."""
    order_id = Hold.objects.filter(pk=hold_id).values_list("order_id", flat=True).first()
    if order_id is None:
        raise NotHeld(f"there is no hold {hold_id}")
    order = lock_order(order_id)
    hold = Hold.objects.select_related("payment", "notification").get(pk=hold_id)
    if not hold.is_open:
        raise NotHeld(f"it was closed at {hold.closed_at}: {hold.closed_how}")
    hold.order = order
    if hold.payment is not None:
        hold.payment.order = order
    return order, hold


def open_holds(order_id: UUID | str) -> list[Hold]:
    """Return the open holds of an order, the oldest first."""
    holds = Hold.objects.filter(order_id=order_id, closed_at=None)
    return list(holds.select_related("payment", "notification").order_by("id"))


def reasons_of(order: Order) -> tuple[str, dict[UUID, str]]:
    """Return what the open holds say: for the order, and for each of its payments that has any."""
    of_order: list[str] = []
    of_payments: dict[UUID, list[str]] = {}
    for hold in Hold.objects.filter(order=order, closed_at=None).order_by("id"):
        of_order.append(_line(hold))
        if hold.payment_id:
            of_payments.setdefault(hold.payment_id, []).append(hold.reason)
    return "\n".join(of_order), {pk: "\n".join(all_) for pk, all_ in of_payments.items()}


def _line(hold: Hold) -> str:
    """Return the line of the order's reasons that a hold is."""
    return f"payment {hold.payment_id}: {hold.reason}" if hold.payment_id else hold.reason


def adopt(order: Order) -> bool:
    """Make holds of the reasons of a locked order that have none; return whether there were any.

    The release before this one writes reasons alone, and runs beside this one while a deployment
    rolls. A reason that it took away comes back: whoever did so decides once more.
    """
    if not order.held_reason and not Hold.objects.filter(order=order, closed_at=None).exists():
        return False
    written, _ = reasons_of(order)
    if order.held_reason == written:
        return False
    known = set(written.splitlines())
    for line in order.held_reason.splitlines():
        if line.strip() and line not in known:
            payment, reason = _read(order, line)
            reported = _reported(payment, reason)
            Hold.objects.create(
                order=order,
                payment=payment,
                notification=reported,
                code=_code_of(reason, reported),
                reason=" ".join(reason.split())[:_MAX_REASON],
            )
    order.held_reason, of_payments = reasons_of(order)
    order.save(update_fields=["held_reason", "updated_at"])
    for pk, text in of_payments.items():
        Payment.objects.filter(pk=pk).update(held_reason=text[:_MAX_SUMMARY])
    log.warning("holds_adopted", order_id=str(order.pk))
    return True


def adopt_all() -> int:
    """Adopt what the release before has put aside; return how many orders those were."""
    shown = dict(Order.objects.exclude(held_reason="").values_list("pk", "held_reason"))
    written: defaultdict[UUID, list[str]] = defaultdict(list)
    for hold in Hold.objects.filter(closed_at=None).order_by("id"):
        written[hold.order_id].append(_line(hold))
    adopted = 0
    for pk in {*shown, *written}:
        if shown.get(pk, "") != "\n".join(written[pk]):
            with transaction.atomic():
                adopted += adopt(lock_order(pk))
    return adopted


def _read(order: Order, line: str) -> tuple[Payment | None, str]:
    """Return the payment that a line of an order's reasons is about, and the reason."""
    named = _ABOUT_PAYMENT.match(line)
    if named is None:
        return None, line
    payment = Payment.objects.filter(order=order, pk=named["id"]).first()
    return payment, line[named.end() :]


def _reported(payment: Payment | None, reason: str) -> PaymentNotification | None:
    if payment is None:
        return None
    held = PaymentNotification.objects.filter(
        payment=payment, outcome=PaymentNotification.Outcome.HELD, reason=reason
    )
    return held.order_by("-decided_at", "-id").first()


def _code_of(reason: str, reported: PaymentNotification | None) -> HoldCode:
    """Return the kind of a reason of the release before, which had only sentences."""
    if reported is not None and reported.status:
        return HoldCode.UNCLEAR_REPORT
    return next((code for part, code in _SENTENCES if part in reason), HoldCode.OTHER)


def _copy_reasons(order: Order, payment: Payment | None) -> None:
    """Bring the copies of the open holds' reasons up to date; see `Hold`."""
    order.held_reason, of_payments = reasons_of(order)
    order.save(update_fields=["held_reason", "updated_at"])
    if payment is not None:
        payment.held_reason = of_payments.get(payment.pk, "")[:_MAX_SUMMARY]
        payment.save(update_fields=["held_reason", "updated_at"])
