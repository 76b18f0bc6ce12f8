"""What is done for the payment events.

An event says "look again": what is true now is read from the payments, under the order's lock. So
the events of one order may be processed in any order, or come from other producers, and the order
still ends as its payments say.
"""

from uuid import UUID

import structlog

from orders import emails
from orders.locks import lock_order
from orders.models import Order
from orders.status import OrderStatus
from payments.alignment import align
from payments.apply import apply_by_event
from payments.confirmation import (
    Asked,
    ask_for_reported,
    ask_for_unknown,
    can_be_asked,
    confirm_event,
    take_word,
)
from payments.exceptions import ContradictsPayment, PaymentNotFound, WrongAmount
from payments.locks import lock_payment_of, lock_payments_of
from payments.models import Payment
from payments.status import OPEN, PaymentStatus
from payments.transitions import Apply, next_status
from skincare.events.claim import Claim
from skincare.events.exceptions import NotPrepared
from skincare.events.handlers import Handler, register
from skincare.events.schema import (
    PAYMENT_FAILED,
    PAYMENT_PROCESSED,
    PAYMENT_REFUNDED,
    PAYMENT_REPORTED,
    Event,
)

log = structlog.get_logger(__name__)


def register_handlers() -> None:
    """Make these functions the handlers of the payment events."""
    register(PAYMENT_REPORTED, Handler(effects=take_word, prepare=ask_for_reported))
    for event_type, effects, notify in (
        (PAYMENT_PROCESSED, money_came_in, send_receipt),
        (PAYMENT_FAILED, attempt_failed, notify_failure),
    ):
        register(
            event_type,
            Handler(
                effects=effects,
                notify=notify,
                prepare=ask_for_unknown,
                prepares_on_demand=True,
                fenced=True,
            ),
        )
    register(PAYMENT_REFUNDED, Handler(effects=money_went_back, notify=notify_refund, fenced=True))


def money_came_in(event: Event, asked: Asked | None = None) -> Order:
    """Bring the order to its standing: paid, unless the money is gone by now.

    `asked` is what the gateway says where only the event knows of the money: raises `NotPrepared`
    where it has to be asked first. Raises also `OrderNotFound`, `PaymentNotFound`, `WrongAmount`
    and `ContradictsPayment`.
    """
    order, payments, payment = _lock(event)
    _check_amount(event, payment)
    if payment.paid_at is None:
        _apply_by_event(PaymentStatus.SETTLED, order, payment, event, asked)
    align(order, event_id=event.event_id, payments=payments)
    return order


def send_receipt(event: Event, order: Order | None = None, *, held: Claim) -> None:
    """Email the receipt, if the order is paid."""
    order = order or _order(event)
    if order.status == OrderStatus.PAID:
        emails.send_receipt(order_id=order.pk, event_id=event.event_id, order=order, held=held)


def attempt_failed(event: Event, asked: Asked | None = None) -> Order:
    """Bring the order to its standing. One failed attempt leaves it waiting, with its stock.

    Raises as `money_came_in` does.
    """
    order, payments, payment = _lock(event)
    _check_amount(event, payment)
    if payment.status in OPEN:
        _apply_by_event(PaymentStatus.FAILED, order, payment, event, asked)
    reason = f"payment {payment.status}"
    align(order, event_id=event.event_id, reason=reason, payments=payments)
    return order


def notify_failure(event: Event, order: Order | None = None, *, held: Claim) -> None:
    """Email that this attempt failed, if the order waits for another one or is lost by it.

    Who has given the order up need not hear that its page was closed.
    """
    order = order or _order(event)
    if order.cancelled_at is not None:
        return
    if order.status in (OrderStatus.PENDING, OrderStatus.CANCELLED):
        emails.send_payment_failed(
            order_id=order.pk, event_id=event.event_id, order=order, held=held
        )


def money_went_back(event: Event) -> Order:
    """Bring the order to its standing: refunded so far. Raises as `money_came_in` does."""
    order, payments, payment = _lock(event)
    if not payment.refunds.filter(amount_rupiah=event.amount_rupiah).exists():
        raise WrongAmount(f"no refund of {event.amount_rupiah} rupiah is known")
    align(order, event_id=event.event_id, payments=payments)
    return order


def notify_refund(event: Event, order: Order | None = None, *, held: Claim) -> None:
    """Email the refund of this event's amount."""
    emails.send_refund(
        order_id=event.order_id,
        event_id=event.event_id,
        amount_rupiah=event.amount_rupiah,
        order=order,
        held=held,
    )


def _apply_by_event(
    status: PaymentStatus, order: Order, payment: Payment, event: Event, asked: Asked | None
) -> None:
    """Bring the payment to the state that only the event knows of.

    Our own events follow their payment's change; one that goes ahead of it is from another
    producer, who saw the money move. Where its gateway is asked, its word counts; otherwise the
    producer is trusted as far as the queue is. Raises `ContradictsPayment` where the payment's
    history cannot go on like that, and `NotPrepared` where the gateway has to be asked first.
    """
    if asked is not None:
        confirm_event(order, payment, event, asked)
        return
    if can_be_asked(payment):
        raise NotPrepared(f"payment {payment.pk} is {payment.status}")
    if not isinstance(next_status(PaymentStatus(payment.status), status), Apply):
        raise ContradictsPayment(f"payment {payment.pk} is {payment.status}, not {status}")
    apply_by_event(payment, status, occurred_at=event.created)
    log.info("payment_moved_by_event", payment_status=payment.status)


def _check_amount(event: Event, payment: Payment) -> None:
    if event.amount_rupiah != payment.amount_rupiah:
        raise WrongAmount(f"{event.amount_rupiah} instead of {payment.amount_rupiah} rupiah")


def _lock(event: Event) -> tuple[Order, list[Payment], Payment]:
    """Return the event's order, all its payments and the event's one, locked until the transaction
    ends."""
    order = lock_order(event.order_id)
    try:
        payment_id = UUID(event.payment_id)
    except ValueError:
        raise PaymentNotFound(f"{event.payment_id} is not the id of a payment") from None
    payments = lock_payments_of(order)
    payment = next((one for one in payments if one.pk == payment_id), None)
    return order, payments, payment or lock_payment_of(order, payment_id)  # it says what is wrong


def _order(event: Event) -> Order:
    return Order.objects.get(pk=event.order_id)
