"""Attempts: opening one, and finding the one that a gateway reports of."""

import re
from collections.abc import Sequence
from typing import Final
from uuid import UUID, uuid5

from django.db.models import Max

from orders.models import Order
from orders.rows import insert
from payments.exceptions import OrderNotPayable
from payments.locks import lock_order_of_transaction, lock_payments_of
from payments.models import Payment
from payments.providers.base import GatewayNotification

#: Of one order. Each new page keeps its stock for longer, and costs calls to the gateways; and a
#: number of more digits than `_REFERENCE` has would not be recognised.
MOST_ATTEMPTS: Final = 50
#: An order's id as the gateways get it, alone or with the number of the attempt.
_REFERENCE: Final = re.compile(
    r"(?P<order>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:-(?P<number>[1-9][0-9]{0,3}))?\Z"
)


def open_attempt(order: Order, *, provider: str, is_new_order: bool = False) -> Payment:
    """Open the order's next attempt with `provider`, and return it. The order is locked, or new.

    Its reference, `<order's id>-<number>`, is what the gateway gets as the id of the order. Raises
    `OrderNotPayable` after `MOST_ATTEMPTS`.
    """
    last = 0 if is_new_order else _last_number(order)
    if last >= MOST_ATTEMPTS:
        raise OrderNotPayable(f"it has had {last} attempts")
    payment = Payment(
        order=order,
        provider=provider,
        number=last + 1,
        reference=f"{order.pk}-{last + 1}",
        amount_rupiah=order.total_rupiah,
    )
    insert(payment)
    return payment


def _last_number(order: Order) -> int:
    return Payment.objects.filter(order=order).aggregate(last=Max("number"))["last"] or 0


def read_reference(reference: str) -> tuple[UUID, int | None] | None:
    """Return the order's id and the number of the attempt that a gateway's reference names.

    None where it is no reference of ours; no number where it is the order's id alone.
    """
    found = _REFERENCE.match(reference)
    if found is None:
        return None
    number = found["number"]
    return UUID(found["order"]), int(number) if number else None


def lock_reported_payment(notification: GatewayNotification) -> Payment | None:
    """Return the notification's payment, locked with its order until the transaction ends.

    None where we know neither the transaction nor the order (yet). The first transaction of an
    attempt takes the payment that was opened for it; each further one (the buyer tried again, or
    paid twice) gets a payment of its own.
    """
    named, number = read_reference(notification.order_reference) or (None, None)
    order = lock_order_of_transaction(
        notification.provider, notification.transaction_id, notification.other_ids, named=named
    )
    if order is None:
        return None
    # Read under the lock: another notification may have come first.
    payments = [one for one in lock_payments_of(order) if one.provider == notification.provider]
    known = _known_payment(notification, payments)
    if known is None and notification.is_dispute:
        return _paid_payment(payments, number)
    return known or _opened_payment(payments, number) or _new_payment(notification, order, number)


def _known_payment(
    notification: GatewayNotification, payments: Sequence[Payment]
) -> Payment | None:
    """Return the payment of this transaction; the transaction's own id goes before its others."""
    ids = {notification.transaction_id, *notification.other_ids}
    known = [one for one in payments if ids & {one.transaction_id, *one.other_ids}]
    own_first = sorted(known, key=lambda one: one.transaction_id != notification.transaction_id)
    return own_first[0] if own_first else None


def _opened_payment(payments: Sequence[Payment], number: int | None) -> Payment | None:
    opened = [one for one in payments if not one.transaction_id and number in (None, one.number)]
    return max(opened, key=lambda one: one.number, default=None)


def _paid_payment(payments: Sequence[Payment], number: int | None) -> Payment | None:
    """Return the one payment that brought money, which is all that can be disputed."""
    paid = [one for one in payments if one.is_paid and number in (None, one.number)]
    return paid[0] if len(paid) == 1 else None


def _new_payment(notification: GatewayNotification, order: Order, number: int | None) -> Payment:
    payment = Payment.objects.create(
        # The same transaction is the same payment, also in a database that was restored.
        id=uuid5(order.pk, f"{notification.provider}:{notification.transaction_id}"),
        order=order,
        provider=notification.provider,
        transaction_id=notification.transaction_id,
        number=number or 1,
        reference=f"{order.pk}-{number}" if number else "",
        amount_rupiah=order.total_rupiah,
    )
    order.payment_list.insert(0, payment)
    return payment
