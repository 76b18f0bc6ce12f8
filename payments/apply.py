"""What changes a payment: a report of its gateway, an event of another producer, a decision.

Decide, change, publish; order and payment are locked. What it means to the order, the event's
handler brings about (`payments.alignment`).
"""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from orders.models import Order
from payments.alignment import hold_contradictions
from payments.attempts import read_reference
from payments.events import failed_event, processed_event, publish_once, refunded_event
from payments.hold_codes import HoldCode
from payments.holds import open_hold
from payments.models import Payment, PaymentNotification, PaymentRefund
from payments.providers.base import CURRENCY, GatewayNotification, whole_rupiah
from payments.refunds import RefundPlan, plan_refunds
from payments.standing import standing
from payments.status import PAID, REFUND, UNPAID, PaymentStatus
from payments.transitions import Apply, Duplicate, Hold, Stale, next_status

_Outcome = PaymentNotification.Outcome


@dataclass(frozen=True)
class Applied:
    """How a notification ended, and why where it changed nothing."""

    outcome: PaymentNotification.Outcome
    reason: str = ""


def apply_report(
    payment: Payment, report: GatewayNotification, stored: PaymentNotification
) -> Applied:
    """Apply what a gateway reports to its locked `payment`, and publish what it makes true.

    `stored` is the row in which the report is kept. Where a person must decide, the order is held
    and the payment's state stays.
    """
    _learn(payment, report)
    named = read_reference(report.order_reference)
    is_named = bool(report.order_reference) and not (report.is_dispute and named is None)
    if is_named and (named is None or named[0] != payment.order_id):
        reason = f"it names another order: {report.order_reference}"
        return _hold(payment, HoldCode.OTHER_ORDER, reason, stored)
    if report.status is None or report.review_reason:
        return _hold(payment, _doubt(report), report.review_reason, stored)
    if report.status in REFUND:
        return _apply_refunds(payment, report, stored)
    match next_status(PaymentStatus(payment.status), report.status):
        case Duplicate():
            payment.save()
            return Applied(_Outcome.REPEATED)
        case Stale(_) if brings_back(payment, report.status, is_asked=report.is_answer):
            return _hold(payment, HoldCode.CONTRADICTS, _back(payment), stored)
        case Stale(reason):
            payment.save()
            return Applied(_Outcome.IGNORED, reason)
        case Hold(reason):
            return _hold(payment, HoldCode.CONTRADICTS, reason, stored)
        case Apply(status):
            # Where no money came in and none does, there is nothing to compare.
            wrong = wrong_money(payment, report)
            if wrong and (status not in UNPAID or payment.is_paid):
                return _hold(payment, HoldCode.MONEY_DIFFERS, wrong, stored)
            _move(payment, status, occurred_at=report.occurred_at, channel=report.channel)
            return Applied(_Outcome.APPLIED)


def apply_by_decision(payment: Payment, reported: PaymentNotification) -> None:
    """Take the state that a held notification reports, because persons decided so."""
    _move(
        payment,
        PaymentStatus(reported.status),
        occurred_at=reported.occurred_at,
        channel=reported.channel,
    )


def apply_by_event(payment: Payment, status: PaymentStatus, *, occurred_at: datetime) -> None:
    """Take the state that an event of another producer reports. Publishes nothing: it is known."""
    _move(payment, status, occurred_at=occurred_at, is_published=True)


def record_refund_by_hand(payment: Payment, *, amount_rupiah: int, key: str, at: datetime) -> None:
    """Record that `amount_rupiah` of a locked payment went back outside its gateway."""
    PaymentRefund.objects.create(
        payment=payment,
        key=key,
        kind=PaymentRefund.Kind.BY_HAND,
        amount_rupiah=amount_rupiah,
        refunded_at=at,
    )
    payment.refunded_rupiah += amount_rupiah
    in_full = payment.refunded_rupiah == payment.amount_rupiah
    status = PaymentStatus.REFUNDED if in_full else PaymentStatus.PARTLY_REFUNDED
    _move(payment, status, occurred_at=at)
    publish_once(
        refunded_event(payment, refund_key=key, amount_rupiah=amount_rupiah, occurred_at=at)
    )


def record_reversal(payment: Payment, *, key: str, at: datetime) -> None:
    """Record that what chargebacks took of a locked payment came back: the dispute was won.

    Where there was none, that its refunds came back.
    """
    amount = payment.charged_back_rupiah or payment.sent_back_rupiah
    PaymentRefund.objects.create(
        payment=payment,
        key=key,
        kind=PaymentRefund.Kind.REVERSAL,
        amount_rupiah=-amount,
        refunded_at=at,
    )
    payment.refunded_rupiah -= amount
    is_whole = payment.refunded_rupiah == 0
    _move(
        payment,
        PaymentStatus.SETTLED if is_whole else PaymentStatus.PARTLY_REFUNDED,
        occurred_at=at,
    )


def brings_back(payment: Payment, notified: str, *, is_asked: bool = True) -> bool:
    """Whether a notified state says that money which went back is in again.

    A dispute that the shop wins, or a refund that the bank does not take, can show itself only as
    the settlement that was there before; a settlement that is notified late looks like that too.
    After a refund only the gateway's answer tells them apart: it `is_asked`, and does not know of
    the refund any more that it reported. What was sent back by hand, it never knew of.

    Midtrans names settlement among what may follow refund, partial_refund and partial_chargeback:
    https://docs.midtrans.com/reference/transaction-status
    """
    if payment.status not in REFUND or notified != PaymentStatus.SETTLED:
        return False
    return payment.charged_back_rupiah > 0 or (is_asked and payment.sent_back_rupiah > 0)


def _back(payment: Payment) -> str:
    if charged_back := payment.charged_back_rupiah:
        return f"settled after {charged_back} rupiah were charged back: was the dispute won?"
    return (
        f"settled after {payment.sent_back_rupiah} rupiah were refunded: did the refund come back?"
    )


def tie(payment: Payment, report: GatewayNotification) -> None:
    """Note how the gateway calls the transaction, so that it is known again; not saved yet."""
    if not payment.transaction_id:
        payment.transaction_id = report.transaction_id
    ids = {report.transaction_id, *report.other_ids, *payment.other_ids}
    payment.other_ids = sorted(ids - {payment.transaction_id})


def _learn(payment: Payment, report: GatewayNotification) -> None:
    tie(payment, report)
    if report.expires_at is not None and payment.status == PaymentStatus.PENDING:
        payment.expires_at = report.expires_at
        _keep_waiting(payment.order, until=report.expires_at)


def _keep_waiting(order: Order, *, until: datetime) -> None:
    """Let the order keep its stock as long as its gateway lets the buyer pay."""
    if until > order.pay_until:
        order.expires_at = until
        order.save(update_fields=["expires_at", "updated_at"])


def _apply_refunds(
    payment: Payment, report: GatewayNotification, stored: PaymentNotification
) -> Applied:
    wrong = wrong_money(payment, report)
    if wrong:
        return _hold(payment, HoldCode.MONEY_DIFFERS, wrong, stored)
    plan = plan_refunds(
        amount_rupiah=payment.amount_rupiah,
        recorded=dict(payment.refunds.values_list("key", "amount_rupiah")),
        notified=report.refunds,
        in_full=report.status is PaymentStatus.REFUNDED,
        most_new=settings.REFUNDS_PER_NOTIFICATION,
    )
    if isinstance(plan, Hold):
        return _hold(payment, HoldCode.REFUND_DIFFERS, plan.reason, stored)
    decision = next_status(PaymentStatus(payment.status), plan.status)
    if isinstance(decision, Hold):
        return _hold(payment, HoldCode.CONTRADICTS, decision.reason, stored)
    if not plan.new:
        payment.save()
        return Applied(_Outcome.REPEATED)
    _refund(payment, plan, report)
    return Applied(_Outcome.APPLIED)


def _refund(payment: Payment, plan: RefundPlan, report: GatewayNotification) -> None:
    for refund in plan.new:
        PaymentRefund.objects.create(
            payment=payment,
            key=refund.key,
            kind=refund.notified.kind,
            amount_rupiah=refund.amount_rupiah,
            refunded_at=refund.notified.refunded_at,
        )
    payment.refunded_rupiah = plan.total_rupiah
    # The settlement that the refund gives back may be unreported: it is implied, and comes first.
    _move(payment, plan.status, occurred_at=report.occurred_at, channel=report.channel)
    for refund in plan.new:
        publish_once(
            refunded_event(
                payment,
                refund_key=refund.key,
                amount_rupiah=refund.amount_rupiah,
                occurred_at=refund.notified.refunded_at,
            )
        )
        if refund.notified.kind == "chargeback":
            reason = f"{refund.amount_rupiah} rupiah charged back ({refund.key})"
            open_hold(payment.order, HoldCode.CHARGEBACK, reason, payment=payment)


def _move(
    payment: Payment,
    status: PaymentStatus,
    *,
    occurred_at: datetime,
    channel: str = "",
    is_published: bool = False,
) -> None:
    """Take the new state, and publish where it means something else to the order than the old."""
    was_paid, was_unpaid = payment.status in PAID, payment.status in UNPAID
    payment.status = status
    payment.channel = channel or payment.channel
    is_new_money = status in PAID and not was_paid
    is_new_failure = status in UNPAID and not was_unpaid
    if is_new_money:
        # The release before this one, which may run beside it, counts neither.
        payment.times_paid = max(payment.times_paid, payment.paid_at is not None) + 1
        payment.times_failed = max(payment.times_failed, was_unpaid)
        payment.paid_at = occurred_at
    if is_new_failure:
        payment.times_failed += 1
    payment.save()
    is_needed = is_new_money and _is_needed(payment)
    if is_published:
        return
    if is_needed:
        publish_once(processed_event(payment, occurred_at=occurred_at))
    if is_new_failure:
        publish_once(failed_event(payment, occurred_at=occurred_at))


def _is_needed(payment: Payment) -> bool:
    """Whether the order needs the money that came in; hold it where it comes unexpected."""
    order = payment.order
    payments = order.payment_list
    found = standing(order.total_rupiah, payments)
    before = standing(order.total_rupiah, [one for one in payments if one.pk != payment.pk])
    hold_contradictions(order, found, payments)
    if before.went_back and before.kept_rupiah == 0:
        reason = "paid again after the money of another payment went back"
        open_hold(order, HoldCode.PAID_AFTER_REFUND, reason, payment=payment)
    if order.is_held:
        payment.refresh_from_db(fields=["held_reason"])
    return not before.is_paid


def _doubt(report: GatewayNotification) -> HoldCode:
    """Return the kind of a report that a person must look at, whatever its status says."""
    if report.is_dispute:
        return HoldCode.CHARGEBACK
    return HoldCode.MATCHED_BY_HAND if report.is_matched_by_hand else HoldCode.UNCLEAR_REPORT


def wrong_money(payment: Payment, report: GatewayNotification) -> str:
    """Return why the reported money is not what the order costs; "" where it is."""
    if report.currency != CURRENCY:
        return f"currency {report.currency or 'missing'} instead of {CURRENCY}"
    if report.amount is None:  # a refund that names only its own amount
        return ""
    rupiah = whole_rupiah(report.amount)
    if rupiah is None:
        return f"amount {report.amount} is not whole rupiah"
    if rupiah != payment.amount_rupiah:
        return f"amount {rupiah} rupiah instead of {payment.amount_rupiah}"
    return ""


def _hold(payment: Payment, code: HoldCode, reason: str, stored: PaymentNotification) -> Applied:
    payment.save()
    open_hold(payment.order, code, reason, payment=payment, notification=stored)
    return Applied(_Outcome.HELD, reason[:255])
