"""What is done for `order.confirmed`."""

from orders.emails import send_order_confirmation
from orders.exceptions import OrderNotFound
from orders.models import Order
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
