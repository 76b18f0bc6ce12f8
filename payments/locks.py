"""The locks of this app, in the one order of `orders.locks`: Order, then Payment, then products.

Whoever holds a locked object passes it on: nobody locks or loads it a second time.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from orders.locks import lock_order, read_locked
from orders.models import Order
from payments.exceptions import PaymentNotFound
from payments.models import Payment


def lock_payment(payment_id: UUID | str) -> Payment:
    """Return the payment, locked with its order (`payment.order`) until the transaction ends.

    Raises `PaymentNotFound`.
    """
    order_id = Payment.objects.filter(pk=payment_id).values_list("order_id", flat=True).first()
    if order_id is None:
        raise PaymentNotFound(f"there is no payment {payment_id}")
    return lock_payment_of(lock_order(order_id), payment_id)


#: The order that has the transaction, under its own id or another one; else the one that is named.
_OF_TRANSACTION: Final = """
id = COALESCE(
    (SELECT order_id FROM payments_payment
     WHERE provider = %s AND (transaction_id = ANY(%s) OR other_ids && %s::varchar[])
     ORDER BY transaction_id = %s DESC LIMIT 1),
    %s::uuid)
"""


def lock_order_of_transaction(
    provider: str, transaction_id: str, other_ids: Sequence[str], *, named: UUID | None
) -> Order | None:
    """Return the order that has a gateway's transaction, or else is `named`, locked until the
    transaction ends; None where there is none.

    The transaction's own id goes before its others. One statement finds and locks it.
    """
    ids = [transaction_id, *other_ids]
    values = [provider, ids, ids, transaction_id, named]
    return next(iter(read_locked(Order, _OF_TRANSACTION, values)), None)


def lock_payments_of(order: Order) -> list[Payment]:
    """Return all payments of a locked order, locked too, the newest first.

    They are `order.payment_list` from now on.
    """
    payments = read_locked(Payment, "order_id = %s ORDER BY created_at DESC", [order.pk])
    for payment in payments:
        payment.order = order
    order.payment_list = payments
    return payments


def lock_payment_of(order: Order, payment_id: UUID | str) -> Payment:
    """Return a payment of a locked order, locked too. Raises `PaymentNotFound`."""
    payments = Payment.objects.select_for_update(no_key=True)
    payment = payments.filter(pk=payment_id, order_id=order.pk).first()
    if payment is None:
        known = Payment.objects.filter(pk=payment_id).exists()
        what = f"payment {payment_id} is not of order {order.pk}"
        raise PaymentNotFound(what if known else f"there is no payment {payment_id}")
    payment.order = order
    return payment
