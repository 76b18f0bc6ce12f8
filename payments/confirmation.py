"""The gateway's own word: signature and token prove who sent a notification, not that it is true.

Midtrans signs neither the status nor the transaction's id, Xendit signs nothing: whoever has seen
one notification can send another one that proves the same sender. So a notification of a provider
in `settings.PROVIDERS_ASKED` is stored and waits. The worker asks the gateway for the payment's
state, while no transaction is open, and what follows, follows from the answer. Where a notification
said something that the gateway does not confirm, the order is held for a person.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings

from orders.locks import lock_order
from orders.models import Order
from payments.apply import Applied, apply_by_event, apply_report, wrong_money
from payments.attempts import lock_reported_payment
from payments.exceptions import (
    CannotBeAsked,
    GatewayRefused,
    GatewayUnavailable,
    PaymentNotFound,
)
from payments.hold_codes import Decision, HoldCode
from payments.holds import close_hold, open_hold, open_holds
from payments.locks import lock_payment_of
from payments.models import Payment, PaymentNotification
from payments.notifications import store
from payments.providers import provider
from payments.providers.base import Gateway, GatewayNotification
from payments.status import OPEN, PAID, REFUND, UNPAID, PaymentStatus
from payments.transitions import Apply, Duplicate, Stale, next_status
from skincare.events.exceptions import DependencyAway
from skincare.events.schema import PAYMENT_FAILED, PAYMENT_PROCESSED, Event

log = structlog.get_logger(__name__)

_Outcome = PaymentNotification.Outcome

#: event type → the states that its producer must have seen.
_CLAIMED: Final = {PAYMENT_PROCESSED: PAID, PAYMENT_FAILED: UNPAID}
#: The states of money that came in and that the bank may take back.
_IN: Final = PAID - REFUND


@dataclass(frozen=True)
class Asked:
    """What a gateway said when it was asked for a payment.

    `answer` is None where it knows no transaction, or where it cannot be asked: `why_not` says so.
    """

    answer: GatewayNotification | None
    why_not: str = ""


def is_asked(provider_name: str) -> bool:
    """Whether this provider is asked before anything follows from its notifications."""
    return provider_name in settings.PROVIDERS_ASKED


def can_be_asked(payment: Payment) -> bool:
    """Whether its provider is a gateway that is asked."""
    return is_asked(payment.provider) and isinstance(provider(payment.provider), Gateway)


def ask(payment: Payment) -> Asked:
    """Ask the gateway for this payment, outside of any transaction.

    Raises `GatewayUnavailable` and `GatewayRefused`: then nothing follows yet.
    """
    waiting = list(_waiting(payment))
    named = [one.payload.get("payment_request_id") for one in waiting]
    with_refunds = payment.is_paid or any(one.status in REFUND for one in waiting)
    try:
        answer = provider(payment.provider).status(
            payment,
            with_refunds=with_refunds,
            request_id=next((name for name in named if name), ""),
            dispute_ids=_ended_disputes(payment) if with_refunds else (),
        )
    except CannotBeAsked as error:
        return Asked(None, f"it cannot be asked {error.reason}")
    return Asked(answer, "" if answer else "it knows no such transaction")


def ask_for_reported(event: Event) -> Asked:
    """Ask for the payment of a `payment.reported`. Raises also `PaymentNotFound`."""
    return _ask_or_wait(_payment(event))


def _ask_or_wait(payment: Payment) -> Asked:
    """Ask; where no answer can be relied on, the event waits and is tried again."""
    try:
        return ask(payment)
    except (GatewayUnavailable, GatewayRefused) as error:
        wait = error.retry_after if isinstance(error, GatewayUnavailable) else None
        raise DependencyAway(str(error), at_least=wait or 0.0) from error


def ask_for_unknown(event: Event) -> Asked | None:
    """Ask for the payment of an event of another producer that saw more than we did.

    None where the payment is as the event says, which is so for our own events, and for providers
    that are not asked. Raises `DependencyAway`.
    """
    payment = _find(event)
    if payment is None or not can_be_asked(payment):
        return None
    if event.event_type == PAYMENT_PROCESSED and payment.paid_at is None:
        return _ask_or_wait(payment)
    if event.event_type == PAYMENT_FAILED and payment.status in OPEN:
        return _ask_or_wait(payment)
    return None


def take_word(event: Event, asked: Asked) -> None:
    """Apply what the gateway said, and end the wait of what was notified of this payment."""
    order = lock_order(event.order_id)
    payment = lock_payment_of(order, _id(event))
    apply_answer(order, payment, asked)


def apply_answer(order: Order, payment: Payment, asked: Asked) -> bool:
    """Apply a gateway's answer to a payment, both locked; decide about what waited for it.

    Returns whether the payment changed.
    """
    applied = Applied(_Outcome.IGNORED, asked.why_not)
    answer = asked.answer
    if answer is not None:
        about = lock_reported_payment(answer)
        if about is None or about.pk != payment.pk:
            # Asked by our reference, it answered with a transaction that another payment has.
            asked = Asked(None, f"it tells of transaction {answer.transaction_id}")
        else:
            stored = store(answer)
            applied = apply_report(payment, answer, stored)
            if stored.outcome == _Outcome.UNMATCHED:
                stored.decide(payment=payment, outcome=applied.outcome, reason=applied.reason)
    truth = _truth(payment, asked, applied)
    for notified in _waiting(payment):
        _decide(order, payment, notified, truth=truth, applied=applied, asked=asked)
    _resolve(order, payment, truth, asked)
    return applied.outcome == _Outcome.APPLIED


def confirm_event(order: Order, payment: Payment, event: Event, asked: Asked) -> bool:
    """Take what another producer's event says, if the gateway says so too.

    Both are locked. Returns whether it does; otherwise the order is held. What the event itself
    tells is not published.
    """
    answer = asked.answer
    status = answer.status if answer else None
    if event.event_type == PAYMENT_PROCESSED and status in REFUND:
        # It came in, as the event says, and went back: what went back is published.
        apply_answer(order, payment, asked)
        return True
    wrong = ""
    if answer is not None and status in _CLAIMED[event.event_type]:
        wrong = wrong_money(payment, answer) if status in PAID else ""
        decision = next_status(PaymentStatus(payment.status), status)
        if not wrong and isinstance(decision, Apply):
            apply_by_event(payment, status, occurred_at=answer.occurred_at)
            log.info("payment_confirmed", payment_status=payment.status)
            return True
    said = wrong or asked.why_not or f"it is {status}"
    reason = f"{event.event_type} of another producer ({event.event_id}); the gateway says: {said}"
    open_hold(order, HoldCode.GATEWAY_DIFFERS, reason, payment=payment)
    return False


def _truth(payment: Payment, asked: Asked, applied: Applied) -> PaymentStatus | None:
    """Return the state that the gateway confirms; None where it confirms none."""
    if asked.answer is None:
        return None
    if applied.outcome in (_Outcome.APPLIED, _Outcome.REPEATED):
        return PaymentStatus(payment.status)  # refunds are counted there
    return asked.answer.status


def _decide(
    order: Order,
    payment: Payment,
    notified: PaymentNotification,
    *,
    truth: PaymentStatus | None,
    applied: Applied,
    asked: Asked,
) -> None:
    if _is_confirmed(notified, truth, asked):
        outcome = applied.outcome if applied.outcome != _Outcome.HELD else _Outcome.IGNORED
        notified.decide(payment=payment, outcome=outcome, reason=applied.reason)
        return
    said = asked.why_not or f"it is {truth or 'not clear'}"
    reason = f"{notified.status or 'an unclear state'} was notified; the gateway says: {said}"
    notified.decide(payment=payment, outcome=_Outcome.HELD, reason=reason)
    open_hold(order, HoldCode.GATEWAY_DIFFERS, reason, payment=payment, notification=notified)


def _is_confirmed(notified: PaymentNotification, truth: PaymentStatus | None, asked: Asked) -> bool:
    """Whether what was notified is what the gateway says, or was before in its own history."""
    if notified.status in OPEN:
        return True  # nothing follows from it
    if truth is None or not notified.status:
        return False
    # A reversal. A declined card is denied as well, but no money of it ever came in.
    is_reversed = truth is PaymentStatus.DENIED and asked.answer and asked.answer.came_in_at
    if is_reversed and notified.status in _IN:
        return True
    decision = next_status(truth, PaymentStatus(notified.status))
    return isinstance(decision, Duplicate | Stale)


def _resolve(order: Order, payment: Payment, truth: PaymentStatus | None, asked: Asked) -> None:
    """Close the holds for what the gateway confirms by now: its status may lag behind its calls."""
    if not order.is_held:
        return
    for hold in open_holds(order.pk):
        if hold.payment_id != payment.pk or hold.notification is None:
            continue
        went_back_after_all = (
            hold.code == HoldCode.CONTRADICTS
            and truth in REFUND
            and hold.notification.status == PaymentStatus.SETTLED
            and not payment.charged_back_rupiah
        )
        was_in_doubt = hold.code == HoldCode.GATEWAY_DIFFERS
        if went_back_after_all or (was_in_doubt and _is_confirmed(hold.notification, truth, asked)):
            hold.payment = payment
            close_hold(order, hold, how=Decision.RESOLVED, reason="the gateway confirms it")


def _waiting(payment: Payment) -> list[PaymentNotification]:
    waiting = PaymentNotification.objects.filter(payment=payment, outcome=_Outcome.WAITING)
    return list(waiting.order_by("id"))


def _ended_disputes(payment: Payment) -> list[str]:
    """Return the ids of the disputes about a payment that ended, as its gateway has notified."""
    endings = provider(payment.provider).dispute_endings
    ended = PaymentNotification.objects.filter(payment=payment, payload__event__in=endings)
    return sorted(set(ended.values_list("payload__id", flat=True)))


def _id(event: Event) -> UUID:
    try:
        return UUID(event.payment_id)
    except ValueError:
        raise PaymentNotFound(f"{event.payment_id} is not the id of a payment") from None


def _find(event: Event) -> Payment | None:
    try:
        return Payment.objects.filter(pk=UUID(event.payment_id)).first()
    except ValueError:
        return None


def _payment(event: Event) -> Payment:
    payment = _find(event)
    if payment is None:
        raise PaymentNotFound(f"there is no payment {event.payment_id}")
    return payment
