"""Given: orders that wait for their payment, and gateways that call the webhooks over HTTP."""

import json
from typing import Any

from django.conf import settings
from django.test import Client

from orders.models import Order
from payments.models import Payment
from skincare.events.consumer import EventOutcome, process
from skincare.events.models import OutboxEvent
from tests.integration.orders.shop import a_product, place
from tests.unit.payments import midtrans_notifications

PRICE = 75_000  # rupiah
TOTAL = 150_000  # rupiah; two pieces, as the example notifications say


def an_order(payment_method: str = "midtrans", *, price_rupiah: int = PRICE) -> Order:
    """A pending order of two pieces, paid with `payment_method`."""
    product = a_product(price_rupiah=price_rupiah)
    placed = place((product, 2), payment_method=payment_method)
    return Order.objects.get(pk=placed.order_id)


def midtrans_posts(document: dict[str, Any]) -> Any:
    """Midtrans calls the webhook with this document, signed."""
    return Client().post(
        "/v1/webhooks/midtrans",
        data=midtrans_notifications.body(document),
        content_type="application/json",
    )


def xendit_posts(document: dict[str, Any]) -> Any:
    """Xendit calls the webhook with this document and its token."""
    return Client().post(
        "/v1/webhooks/xendit",
        data=json.dumps(document),
        content_type="application/json",
        headers={"x-callback-token": settings.XENDIT_CALLBACK_TOKEN},
    )


def the_payment(order: Order) -> Payment:
    """The one payment of the order, as it is now."""
    return Payment.objects.get(order=order)


def published(order: Order) -> list[OutboxEvent]:
    """The order's payment events, oldest first."""
    events = OutboxEvent.objects.filter(order_id=str(order.pk), event_type__startswith="payment.")
    return list(events.order_by("id"))


def told(order: Order) -> list[tuple[str, int]]:
    """Type and rupiah of the order's payment events, oldest first."""
    return [(event.event_type, event.payload["amount_rupiah"]) for event in published(order)]


def consume(event: OutboxEvent) -> EventOutcome:
    """A worker gets the event."""
    return process(event.payload, receive_count=1, worker="worker-1")


def consume_all(order: Order) -> Order:
    """Workers get all events of the order; return the order as it is then."""
    for event in OutboxEvent.objects.filter(order_id=str(order.pk)).order_by("id"):
        consume(event)
    order.refresh_from_db()
    return order
