"""What is done for `order.confirmed` and `order.expired`."""

from orders.emails import send_order_confirmation, send_order_expired
from orders.exceptions import OrderNotFound
from orders.models import Order
from orders.status import OrderStatus
from skincare.events.claim import Claim
from skincare.events.handlers import Handler
from skincare.events.schema import Event


def check_order(event: Event) -> Order:
    """Return the order, which must exist; it does not change.

    The event is committed together with its order, so an order that is missing cannot appear
    later: raises `OrderNotFound`, which is terminal.
    """
    order = Order.objects.filter(pk=event.order_id).first()
    if order is None:
        raise OrderNotFound(f"there is no order {event.order_id}")
    return order


def confirm_to_buyer(event: Event, order: Order | None = None, *, held: Claim) -> None:
    """Send the confirmation email."""
    send_order_confirmation(
        order_id=event.order_id, event_id=event.event_id, order=order, held=held
    )


ORDER_CONFIRMED = Handler(effects=check_order, notify=confirm_to_buyer, fenced=True)


def say_goodbye(event: Event, order: Order | None = None, *, held: Claim) -> None:
    """Send the email that the order is over, if it still is."""
    order = order or Order.objects.get(pk=event.order_id)
    if order.status == OrderStatus.EXPIRED:
        send_order_expired(order_id=order.pk, event_id=event.event_id, order=order, held=held)


ORDER_EXPIRED = Handler(effects=check_order, notify=say_goodbye, fenced=True)
