"""What is done for `order.confirmed` and `order.expired`."""

from orders.emails import send_order_confirmation, send_order_expired
from orders.exceptions import OrderNotFound
from orders.models import Order
from orders.status import OrderStatus
from skincare.events.handlers import Handler
from skincare.events.schema import Event


def check_order(event: Event) -> None:
    """Make sure that the order exists; the order itself does not change.

    The event is committed together with its order, so an order that is missing cannot appear
    later: raises `OrderNotFound`, which is terminal.
    """
    if not Order.objects.filter(pk=event.order_id).exists():
        raise OrderNotFound(f"there is no order {event.order_id}")


def confirm_to_buyer(event: Event) -> None:
    """Send the confirmation email."""
    send_order_confirmation(order_id=event.order_id, event_id=event.event_id)


ORDER_CONFIRMED = Handler(effects=check_order, notify=confirm_to_buyer)


def say_goodbye(event: Event) -> None:
    """Send the email that the order is over, if it still is."""
    if Order.objects.get(pk=event.order_id).status == OrderStatus.EXPIRED:
        send_order_expired(order_id=event.order_id, event_id=event.event_id)


ORDER_EXPIRED = Handler(effects=check_order, notify=say_goodbye)
