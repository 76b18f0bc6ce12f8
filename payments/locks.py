"""The locks of this app, in the one order of `orders.locks`: Order, then Payment, then products.

Whoever holds a locked object passes it on: nobody locks or loads it a second time.
"""

from uuid import UUID

from django.db.models import Prefetch, prefetch_related_objects

from orders.locks import lock_order
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


def lock_payments_of(order: Order) -> list[Payment]:
    """Return all payments of a locked order, locked too, the newest first.

    `order.payments.all()` gives the same objects from now on.
    """
    locked = Payment.objects.select_for_update(no_key=True)
    prefetch_related_objects([order], Prefetch("payments", locked))
    return list(order.payments.all())


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
