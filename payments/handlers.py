"""What is done for the payment events.

An event says that something happened; what is true now is read from the payment, under the order's
lock. So the events of one order may be processed in any order, or come from other producers, and
the order still ends as the payments say.
"""

from collections.abc import Sequence
from uuid import UUID

import structlog

from orders import emails, lifecycle
from orders.locks import lock_order
from orders.models import Order
from payments.apply import apply_by_event
from payments.events import processed_event_id
from payments.exceptions import ContradictsPayment, PaymentNotFound, WrongAmount
from payments.models import Payment
from payments.status import OPEN, PAID, UNPAID, PaymentStatus
from payments.transitions import Apply, next_status
from skincare.events.handlers import Handler, register
from skincare.events.schema import PAYMENT_FAILED, PAYMENT_PROCESSED, PAYMENT_REFUNDED, Event
from skincare.telemetry import metrics

log = structlog.get_logger(__name__)


def register_handlers() -> None:
    """Make these functions the handlers of the payment events."""
    register(PAYMENT_PROCESSED, Handler(effects=pay_order, notify=send_receipt))
    register(PAYMENT_FAILED, Handler(effects=cancel_order, notify=notify_failure))
    register(PAYMENT_REFUNDED, Handler(effects=refund_order, notify=notify_refund))


def pay_order(event: Event) -> None:
    """Mark the order paid, unless the payment was reversed in the meantime."""
    order, payment = _lock(event)
    if event.amount_rupiah != payment.amount_rupiah:
        raise WrongAmount(f"{event.amount_rupiah} instead of {payment.amount_rupiah} rupiah")
    if payment.paid_at is None:
        _apply_by_event(PaymentStatus.SETTLED, payment, event)
    if payment.is_paid:
        _mark_paid(order, payment, event_id=event.event_id)
    else:
        log.info("payment_reversed_before_processing", payment_status=payment.status)


def send_receipt(event: Event) -> None:
    """Email the receipt, if the money is still there."""
    if _payment(event).is_paid:
        emails.send_receipt(order_id=event.order_id, event_id=event.event_id)


def cancel_order(event: Event) -> None:
    """Cancel the order, unless another payment has paid it or can still do so."""
    order, payment = _lock(event)
    if event.amount_rupiah != payment.amount_rupiah:
        raise WrongAmount(f"{event.amount_rupiah} instead of {payment.amount_rupiah} rupiah")
    if payment.status in OPEN:
        _apply_by_event(PaymentStatus.FAILED, payment, event)
    if _is_lost(order):
        lifecycle.cancel_unpaid(
            order_id=order.pk, event_id=event.event_id, reason=f"payment {payment.status}"
        )
    else:
        log.info("order_has_other_payment", payment_status=payment.status)


def notify_failure(event: Event) -> None:
    """Email that the payment failed, if the order was lost by it."""
    payment = _payment(event)
    if _is_lost(payment.order):
        emails.send_payment_failed(order_id=event.order_id, event_id=event.event_id)


def refund_order(event: Event) -> None:
    """Record what was refunded of the order so far."""
    order, payment = _lock(event)
    if not payment.refunds.filter(amount_rupiah=event.amount_rupiah).exists():
        raise WrongAmount(f"no refund of {event.amount_rupiah} rupiah is known")
    refunded = refunded_of_order(order)
    if not refunded:
        log.info("refund_of_surplus_payment", amount_rupiah=event.amount_rupiah)
        return
    # The settlement's event may come later, or be waiting for another try: it changes nothing then.
    _mark_paid(order, payment, event_id=processed_event_id(payment))
    lifecycle.record_refund(order_id=order.pk, event_id=event.event_id, refunded_rupiah=refunded)


def notify_refund(event: Event) -> None:
    """Email the refund of this event's amount."""
    emails.send_refund(
        order_id=event.order_id, event_id=event.event_id, amount_rupiah=event.amount_rupiah
    )


def refunded_of_order(order: Order) -> int:
    """Return the rupiah that went back of the order's total.

    An order that was paid twice gets its surplus refunded; that takes nothing off the order.
    """
    paid = [payment for payment in _payments(order) if payment.status in PAID]
    kept = sum(payment.amount_rupiah - payment.refunded_rupiah for payment in paid)
    return max(order.total_rupiah - kept, 0) if paid else 0


def _mark_paid(order: Order, payment: Payment, *, event_id: str) -> None:
    """Mark the order paid; count the payment if that is what paid it."""
    if lifecycle.mark_paid(order_id=order.pk, event_id=event_id).status != order.status:
        metrics.record(
            {"PaymentProcessed": 1, "PaymentAmountRupiah": payment.amount_rupiah},
            provider=payment.provider,
        )


def _apply_by_event(status: PaymentStatus, payment: Payment, event: Event) -> None:
    """Bring the payment to the state that only the event knows of.

    Our own events follow their payment's change; one that goes ahead of it is from another
    producer, who saw the money move and is trusted as far as the queue is. Raises
    `ContradictsPayment` where the payment's history cannot go on like that.
    """
    if not isinstance(next_status(PaymentStatus(payment.status), status), Apply):
        raise ContradictsPayment(f"payment {payment.pk} is {payment.status}, not {status}")
    apply_by_event(payment, status, occurred_at=event.created)
    log.info("payment_moved_by_event", payment_status=payment.status)


def _is_lost(order: Order) -> bool:
    """Whether no payment of the order came in or can still come in."""
    return all(payment.status in UNPAID for payment in _payments(order))


def _payments(order: Order) -> Sequence[Payment]:
    return list(Payment.objects.filter(order=order))


def _lock(event: Event) -> tuple[Order, Payment]:
    """Return the event's order, locked until the transaction ends, and its payment."""
    order = lock_order(event.order_id)
    return order, _payment(event)


def _payment(event: Event) -> Payment:
    try:
        payment_id = UUID(event.payment_id)
    except ValueError:
        raise PaymentNotFound(f"{event.payment_id} is not the id of a payment") from None
    found = Payment.objects.select_related("order").filter(pk=payment_id).first()
    if found is None:
        raise PaymentNotFound(f"there is no payment {event.payment_id}")
    if str(found.order_id) != event.order_id:
        raise PaymentNotFound(f"payment {event.payment_id} is not of order {event.order_id}")
    return found
