"""Given: products, orders and what events have done to them."""

from datetime import timedelta
from itertools import count
from uuid import uuid4

from django.db import transaction
from django.utils import timezone

from orders import lifecycle, stock
from orders.checkout import Item, Placed, place_order
from orders.models import GUEST, Order, Product, StockMovement
from orders.search import refresh_search

METHOD = "transfer"
_skus = count(1)


def a_product(
    *, stocked: int = 10, price_rupiah: int = 50_000, name: str = "Serum", description: str = ""
) -> Product:
    """A product with `stocked` pieces received, as the search knows it."""
    product = Product.objects.create(
        sku=f"SKU-{next(_skus)}", name=name, description=description, price_rupiah=price_rupiah
    )
    if stocked:
        stock.apply_movements(
            [stock.plan_receive(product.pk, stocked)],
            {product.pk: product},
            event_id=str(uuid4()),
            order_id=None,
        )
    refresh_search([product.pk])
    product.refresh_from_db()
    return product


def place(
    *wanted: tuple[Product, int],
    key: str | None = None,
    email: str = "sari@example.com",
    user_id: str = GUEST,
    language: str = "id",
    payment_method: str = METHOD,
) -> Placed:
    """Check out these products and quantities."""
    return place_order(
        items=[Item(product.sku, quantity) for product, quantity in wanted],
        email=email,
        payment_method=payment_method,
        idempotency_key=key or str(uuid4()),
        user_id=user_id,
        language=language,
    )


def an_order(*wanted: tuple[Product, int], language: str = "id") -> Order:
    """A pending order."""
    return Order.objects.get(pk=place(*wanted, language=language).order_id)


def paid(order: Order, event_id: str | None = None) -> Order:
    with transaction.atomic():
        return lifecycle.mark_paid(order_id=order.pk, event_id=event_id or str(uuid4()))


def cancelled(order: Order, event_id: str | None = None, reason: str = "deny") -> Order:
    with transaction.atomic():
        return lifecycle.cancel_unpaid(
            order_id=order.pk, event_id=event_id or str(uuid4()), reason=reason
        )


def refunded(order: Order, refunded_rupiah: int, event_id: str | None = None) -> Order:
    with transaction.atomic():
        return lifecycle.record_refund(
            order_id=order.pk, event_id=event_id or str(uuid4()), refunded_rupiah=refunded_rupiah
        )


def expired(order: Order) -> Order:
    """The order, a day older than it is allowed to be, after the sweep."""
    aged(order, timedelta(hours=25))
    lifecycle.expire_unpaid_orders(older_than=timedelta(hours=24))
    order.refresh_from_db()
    assert order.status == "expired"
    return order


def shipped(order: Order) -> Order:
    Order.objects.filter(pk=order.pk).update(shipped_at=timezone.now())
    order.refresh_from_db()
    return order


def aged(order: Order, age: timedelta) -> None:
    Order.objects.filter(pk=order.pk).update(created_at=timezone.now() - age)


def numbers(product: Product) -> tuple[int, int]:
    """The product's stock and reserved, as they are now."""
    product.refresh_from_db()
    return product.stock, product.reserved


def movements(order: Order, product: Product) -> list[tuple[str, int, int]]:
    """What moved for this order and product, oldest first: kind, stock, reserved."""
    rows = StockMovement.objects.filter(order=order, product=product).order_by("id")
    return list(rows.values_list("kind", "stock_delta", "reserved_delta"))
