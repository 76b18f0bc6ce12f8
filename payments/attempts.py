"""Which payment a notification speaks of, locked in the one order: Order, then Payment."""

from uuid import UUID

from django.db.models import Q

from orders.exceptions import OrderNotFound
from orders.locks import lock_order
from orders.models import Order
from payments.locks import lock_payment_of
from payments.models import Payment
from payments.providers.base import GatewayNotification


def lock_reported_payment(notification: GatewayNotification) -> Payment | None:
    """Return the notification's payment, locked with its order until the transaction ends.

    None where we know neither the transaction nor the order (yet). The first transaction of a
    gateway takes the payment that checkout opened there; each further one (the buyer tried again,
    or paid twice) gets a payment of its own.
    """
    known = _known_payment(notification)
    order_id = known.order_id if known else _order_id(notification.order_reference)
    if order_id is None:
        return None
    try:
        order = lock_order(order_id)
    except OrderNotFound:
        return None
    # Asked again under the lock: another notification may have come first.
    known = _known_payment(notification)
    if known is not None and known.order_id != order.pk:
        return None
    payment = known or _opened_payment(notification, order) or _new_payment(notification, order)
    return lock_payment_of(order, payment.pk)


def _known_payment(notification: GatewayNotification) -> Payment | None:
    """Return the payment of this transaction; the transaction's own id goes before its others."""
    ids = [notification.transaction_id, *notification.other_ids]
    found = Payment.objects.filter(
        Q(transaction_id__in=ids) | Q(other_ids__overlap=ids), provider=notification.provider
    )
    own_first = sorted(found, key=lambda one: one.transaction_id != notification.transaction_id)
    return own_first[0] if own_first else None


def _opened_payment(notification: GatewayNotification, order: Order) -> Payment | None:
    return Payment.objects.filter(
        provider=notification.provider, order=order, transaction_id=""
    ).first()


def _new_payment(notification: GatewayNotification, order: Order) -> Payment:
    return Payment.objects.create(
        order=order,
        provider=notification.provider,
        transaction_id=notification.transaction_id,
        amount_rupiah=order.total_rupiah,
    )


def _order_id(reference: str) -> UUID | None:
    """Return the order id in `reference`: a UUID exactly as we gave it to the gateway."""
    try:
        order_id = UUID(reference)
    except ValueError:
        return None
    return order_id if str(order_id) == reference else None
