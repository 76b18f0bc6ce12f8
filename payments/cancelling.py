"""Giving an order up: for its buyer, who may as long as no money moves, and for the shop.

The order ends here, under its lock. The pages on which it could still be paid are closed at their
gateways by the next reconciliation, with no transaction open.
"""

from uuid import UUID

import structlog
from django.db import transaction
from django.utils import timezone

from orders.locks import lock_order
from orders.models import Order
from orders.sentences import Sentence
from orders.status import ENDED_UNPAID, OrderStatus
from payments.alignment import align
from payments.exceptions import OrderNotCancellable
from payments.notifications import unasked_money
from payments.reconciliation import ask_soon
from payments.standing import Standing
from skincare.events.schema import new_event_id

log = structlog.get_logger(__name__)


def cancel_for_buyer(*, order_id: UUID | str) -> Order:
    """Cancel an unpaid order and give its stock back; one that has ended unpaid stays as it is.

    Raises `OrderNotFound`, and `OrderNotCancellable` where money is in, on its way or in doubt, and
    where a person looks at the order.
    """
    with transaction.atomic():
        order = lock_order(order_id)
        event_id = new_event_id("order.cancelled", str(order.pk))
        found = align(order, event_id=event_id).standing
        why = _why_not(order, found)
        if why:
            raise OrderNotCancellable(why)
        if order.status_now in ENDED_UNPAID:
            return order
        give_up(order)
        align(order, event_id=event_id, reason="cancelled by its buyer")
    log.info("order_cancelled_by_buyer", order_id=str(order.pk))
    return order


def give_up(order: Order) -> None:
    """Note that a locked order is given up, and have the pages closed on which it can be paid.

    The caller aligns it.
    """
    if order.cancelled_at is not None:
        return
    order.cancelled_at = timezone.now()
    order.save(update_fields=["cancelled_at", "updated_at"])
    ask_soon(order)


def _why_not(order: Order, found: Standing) -> str:
    """Return why a buyer cannot cancel a locked order; "" where nothing forbids it."""
    if order.shipped_at is not None:
        return Sentence("Its goods are on their way.", "Barangnya sudah dikirim.")
    if found.kept_rupiah > 0:
        return Sentence(
            "Its money is in: ask the shop to give it back.",
            "Uangnya sudah kami terima: mintalah pengembalian kepada toko.",
        )
    if found.in_doubt or unasked_money().filter(payment__order=order).exists():
        return Sentence(
            "Its payment is being checked: look again in some minutes.",
            "Pembayarannya sedang diperiksa: lihat lagi beberapa menit lagi.",
        )
    if order.is_held:
        return Sentence("The shop looks at its payment.", "Toko sedang memeriksa pembayarannya.")
    if order.status_now not in (OrderStatus.PENDING, *ENDED_UNPAID):
        return Sentence("It is over already.", "Pesanan ini sudah selesai.")
    return ""
