"""Histories of an order: what gateways report, a worker for its events, and what must be true then.

- Shippable means that exactly the total is kept.
- Kept money has an order that is paid, partly refunded, or held.
- The ledger adds up to the stock, and to what the order holds.
- The check of all money finds nothing.
"""

from typing import Any

from django.db import transaction
from django.db.models import Sum

from orders.models import Order, Product
from payments.models import Payment
from payments.money_check import check_money
from payments.notifications import record
from payments.providers import PROVIDERS
from skincare.events.handlers import handler_for
from skincare.events.models import OutboxEvent
from skincare.events.schema import parse_event
from tests.integration.orders.shop import place

IN = ("captured", "settled", "partly_refunded", "refunded")


def notify(name: str, document: dict[str, Any]) -> None:
    report = PROVIDERS[name].parse(document)  # type: ignore[attr-defined]
    record(report)


class Worker:
    """Processes the order's events as the consumer does, but for claim and email."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.done: list[OutboxEvent] = []

    def waiting(self) -> list[OutboxEvent]:
        events = OutboxEvent.objects.filter(
            order_id=str(self.order.pk), event_type__startswith="payment."
        ).exclude(pk__in=[event.pk for event in self.done])
        return list(events.order_by("id"))

    def process(self, row: OutboxEvent) -> None:
        event = parse_event(row.payload)
        handler = handler_for(event.event_type)
        assert handler is not None
        with transaction.atomic():
            handler.effects(event)
        if row not in self.done:
            self.done.append(row)


def new_order(product: Product) -> Order:
    placed = place((product, 2), payment_method="midtrans")
    return Order.objects.get(pk=placed.order_id)


def kept_of(order: Order) -> int:
    """Rupiah that the shop keeps of the order's payments."""
    paid = Payment.objects.filter(order=order, status__in=IN)
    return sum(payment.amount_rupiah - payment.refunded_rupiah for payment in paid)


def check(order: Order, product: Product, history: object) -> None:
    """Hold the end of a history to what must always be true."""
    order.refresh_from_db()
    product.refresh_from_db()
    kept = kept_of(order)
    if order.can_be_shipped:
        assert kept == order.total_rupiah, history
    if kept > 0:
        assert order.status in ("paid", "partly_refunded") or order.is_held, history
    if order.status == "paid":
        assert kept >= order.total_rupiah, history
    moved = product.movements.aggregate(stock=Sum("stock_delta"), reserved=Sum("reserved_delta"))
    assert (moved["stock"], moved["reserved"]) == (product.stock, product.reserved), history
    found = [str(one) for one in check_money()]
    assert found == [], (history, found)


class Undone(Exception):
    """Takes back what a branch did."""
