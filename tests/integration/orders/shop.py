"""Given: products, orders and what events have done to them."""

from datetime import timedelta
from itertools import count
from uuid import uuid4

from django.db import transaction
from django.utils import timezone

from orders import lifecycle, stock
from orders.checkout import Item, Placed, place_order
from orders.locks import lock_order
from orders.models import GUEST, Order, Product, StockMovement
from orders.search import refresh_search
from orders.status import OrderStatus

METHOD = "transfer"
DAY = timedelta(hours=24)
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


def moved(
    order: Order,
    to: OrderStatus,
    *,
    refunded_rupiah: int = 0,
    event_id: str | None = None,
    reason: str = "told so",
) -> Order:
    """The order, brought to this state as its payments' standing would."""
    with transaction.atomic():
        locked = lock_order(order.pk)
        lifecycle.move(
            locked,
            to=to,
            event_id=event_id or str(uuid4()),
            reason=reason,
            refunded_rupiah=refunded_rupiah,
        )
    return locked


def paid(order: Order, event_id: str | None = None) -> Order:
    return moved(order, OrderStatus.PAID, event_id=event_id)


def waiting(order: Order, event_id: str | None = None) -> Order:
    """The order after its money was taken back."""
    return moved(order, OrderStatus.PENDING, event_id=event_id)


def cancelled(order: Order, event_id: str | None = None, reason: str = "deny") -> Order:
    return moved(order, OrderStatus.CANCELLED, event_id=event_id, reason=reason)


def refunded(order: Order, refunded_rupiah: int, event_id: str | None = None) -> Order:
    in_full = refunded_rupiah == order.total_rupiah
    to = OrderStatus.REFUNDED if in_full else OrderStatus.PARTLY_REFUNDED
    return moved(order, to, refunded_rupiah=refunded_rupiah, event_id=event_id)


def expired(order: Order) -> Order:
    return moved(order, OrderStatus.EXPIRED)


def shipped(order: Order) -> Order:
    Order.objects.filter(pk=order.pk).update(shipped_at=timezone.now())
    order.refresh_from_db()
    return order


def aged(order: Order, age: timedelta) -> None:
    """Let the order be so old, and its time to pay be over for the part beyond a day."""
    made = timezone.now() - age
    Order.objects.filter(pk=order.pk).update(created_at=made, expires_at=made + DAY)


def numbers(product: Product) -> tuple[int, int]:
    """The product's stock and reserved, as they are now."""
    product.refresh_from_db()
    return product.stock, product.reserved


def movements(order: Order, product: Product) -> list[tuple[str, int, int]]:
    """What moved for this order and product, oldest first: kind, stock, reserved."""
    rows = StockMovement.objects.filter(order=order, product=product).order_by("id")
    return list(rows.values_list("kind", "stock_delta", "reserved_delta"))
