"""Dead letters with the order and the payment that their events are about."""

from collections.abc import Iterable
from dataclasses import dataclass

from orders.models import Order
from payments.models import Payment
from payments.story import payment_uuid
from skincare.events.letters import DeadLetter


@dataclass(frozen=True, repr=False)
class Letter:
    """A message of the dead-letter queue, and its order and payment where they are known."""

    letter: DeadLetter
    order: Order | None
    payment: Payment | None

    def __repr__(self) -> str:
        """One line, as a shell shows it."""
        letter = self.letter
        what = f"{letter.event_type} {letter.event_id}" if letter.event else letter.kind
        order = f"; order {self.order.number} is {self.order.status}" if self.order else ""
        payment = f"; payment is {self.payment.status}" if self.payment else ""
        return f"{letter.message_id}  {what}  {letter.summary}{order}{payment}"


def join(letters: Iterable[DeadLetter]) -> list[Letter]:
    """Join letters with their events' orders and payments, with two queries for all of them."""
    letters = list(letters)
    events = [letter.event for letter in letters if letter.event]
    found_orders = Order.objects.in_bulk({event.order_id for event in events})
    payment_ids = {payment_uuid(event.payment_id) for event in events} - {None}
    found_payments = Payment.objects.in_bulk(payment_ids)
    orders = {str(pk): order for pk, order in found_orders.items()}
    payments = {str(pk): payment for pk, payment in found_payments.items()}
    return [
        Letter(
            letter,
            orders.get(letter.event.order_id) if letter.event else None,
            payments.get(letter.event.payment_id) if letter.event else None,
        )
        for letter in letters
    ]
