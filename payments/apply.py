"""What one notification does to its payment: decide, change, tell. Order and payment are locked."""

from dataclasses import dataclass
from datetime import datetime

from orders.lifecycle import hold as hold_order
from payments.events import failed_event, processed_event, refunded_event
from payments.models import Payment, PaymentNotification, PaymentRefund
from payments.providers.base import CURRENCY, GatewayNotification, whole_rupiah
from payments.refunds import RefundPlan, plan_refunds
from payments.status import PAID, REFUND, UNPAID, PaymentStatus
from payments.transitions import Apply, Duplicate, Hold, Stale, next_status
from skincare.events.outbox import publish
from skincare.telemetry import metrics

_Outcome = PaymentNotification.Outcome
_MAX_REASON = 255


@dataclass(frozen=True)
class Applied:
    """How a notification ended, and why where it changed nothing."""

    outcome: PaymentNotification.Outcome
    reason: str = ""


def apply_notification(payment: Payment, notification: GatewayNotification) -> Applied:
    """Apply `notification` to its locked `payment`, publish what it makes true, and save.

    Where a person must decide, payment and order are held and the payment's state stays. Only
    money that comes in for an order that another payment has paid already is recorded and held,
    and told to nobody: the order is paid once.
    """
    _learn_ids(payment, notification)
    if notification.status is None or notification.review_reason:
        return _hold(payment, notification.review_reason)
    if notification.order_reference not in ("", str(payment.order_id)):
        return _hold(payment, f"it names another order: {notification.order_reference}")
    if notification.status in REFUND:
        return _apply_refunds(payment, notification)
    match next_status(PaymentStatus(payment.status), notification.status):
        case Duplicate():
            payment.save()
            return Applied(_Outcome.REPEATED)
        case Stale(reason):
            payment.save()
            return Applied(_Outcome.IGNORED, reason)
        case Hold(reason):
            return _hold(payment, reason)
        case Apply(status):
            # Where no money came in and none does, there is nothing to compare.
            wrong = _wrong_money(payment, notification)
            if wrong and (status not in UNPAID or payment.is_paid):
                return _hold(payment, wrong)
            return _move(payment, status, notification)


def apply_by_decision(payment: Payment, told: PaymentNotification) -> Applied:
    """Take the state that a held notification tells of, because persons decided so.

    The payment is locked and not held. It is held again where its order is paid already.
    """
    return _move(payment, PaymentStatus(told.status), told)


def _learn_ids(payment: Payment, notification: GatewayNotification) -> None:
    if not payment.transaction_id:
        payment.transaction_id = notification.transaction_id
    told = {notification.transaction_id, *notification.other_ids, *payment.other_ids}
    payment.other_ids = sorted(told - {payment.transaction_id})


def apply_by_event(payment: Payment, status: PaymentStatus, *, occurred_at: datetime) -> None:
    """Take the state that an event of another producer tells of. Publishes nothing: it is told."""
    payment.status = status
    if status in PAID:
        payment.paid_at = occurred_at
        first = _other_paid_payment(payment)
        if first is not None:
            _hold(payment, f"paid twice: payment {first.pk} has paid the order already")
    payment.save()


def _apply_refunds(payment: Payment, notification: GatewayNotification) -> Applied:
    wrong = _wrong_money(payment, notification)
    if wrong:
        return _hold(payment, wrong)
    plan = plan_refunds(
        amount_rupiah=payment.amount_rupiah,
        recorded=dict(payment.refunds.values_list("key", "amount_rupiah")),
        notified=notification.refunds,
        in_full=notification.status is PaymentStatus.REFUNDED,
    )
    if isinstance(plan, Hold):
        return _hold(payment, plan.reason)
    decision = next_status(PaymentStatus(payment.status), plan.status)
    if isinstance(decision, Hold):
        return _hold(payment, decision.reason)
    if not plan.new:
        payment.save()
        return Applied(_Outcome.REPEATED)
    return _refund(payment, plan, notification)


def _refund(payment: Payment, plan: RefundPlan, notification: GatewayNotification) -> Applied:
    for refund in plan.new:
        PaymentRefund.objects.create(
            payment=payment,
            key=refund.key,
            kind=refund.notified.kind,
            amount_rupiah=refund.amount_rupiah,
            refunded_at=refund.notified.refunded_at,
        )
    payment.refunded_rupiah = plan.total_rupiah
    # The settlement that the refund gives back may be untold: it is implied, and told first.
    applied = _move(payment, plan.status, notification)
    for refund in plan.new:
        publish(
            refunded_event(
                payment,
                refund_key=refund.key,
                amount_rupiah=refund.amount_rupiah,
                occurred_at=refund.notified.refunded_at,
            )
        )
        if refund.notified.kind == "chargeback":
            _hold(payment, f"{refund.amount_rupiah} rupiah charged back ({refund.key})")
    return applied


def _move(
    payment: Payment,
    status: PaymentStatus,
    notification: GatewayNotification | PaymentNotification,
) -> Applied:
    """Take the new state, and publish where it means something else to the order than the old."""
    was_paid, was_unpaid = payment.status in PAID, payment.status in UNPAID
    payment.status = status
    payment.channel = notification.channel or payment.channel
    if status in PAID and not was_paid:
        payment.paid_at = notification.occurred_at
    payment.save()
    if status in PAID and not was_paid:
        first = _other_paid_payment(payment)
        if first is not None:
            return _hold(payment, f"paid twice: payment {first.pk} has paid the order already")
        publish(processed_event(payment, occurred_at=notification.occurred_at))
    if status in UNPAID and not was_unpaid:
        publish(failed_event(payment, occurred_at=notification.occurred_at))
    return Applied(_Outcome.APPLIED)


def _other_paid_payment(payment: Payment) -> Payment | None:
    others = Payment.objects.filter(order_id=payment.order_id, status__in=PAID)
    return others.exclude(pk=payment.pk).order_by("paid_at").first()


def _wrong_money(payment: Payment, notification: GatewayNotification) -> str:
    """Return why the notified money is not what the order costs; "" where it is."""
    if notification.currency != CURRENCY:
        return f"currency {notification.currency or 'missing'} instead of {CURRENCY}"
    if notification.amount is None:  # a refund that names only its own amount
        return ""
    rupiah = whole_rupiah(notification.amount)
    if rupiah is None:
        return f"amount {notification.amount} is not whole rupiah"
    if rupiah != payment.amount_rupiah:
        return f"amount {rupiah} rupiah instead of {payment.amount_rupiah}"
    return ""


def _hold(payment: Payment, reason: str) -> Applied:
    reason = reason[:_MAX_REASON]
    if not payment.held_reason:
        metrics.count("PaymentsHeld", provider=payment.provider)
    payment.held_reason = reason
    payment.save()
    hold_order(order_id=payment.order_id, reason=f"payment {payment.pk}: {reason}")
    return Applied(_Outcome.HELD, reason)
