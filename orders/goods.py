"""Goods that come in: booked once for each delivery, in the ledger and the audit log."""

import structlog
from django.db import IntegrityError, transaction

from orders import stock
from orders.exceptions import AlreadyReceived, InvalidDelivery, ProductNotFound
from orders.locks import lock_products
from orders.models import Product, StockMovement
from skincare.events import audit

log = structlog.get_logger(__name__)

#: Pieces of one product in one delivery; more is a slip of the finger.
MOST_PIECES = 1_000_000
_MOST_ON_HAND = 2**31 - 1  # of the column
_LONGEST_NUMBER = 64


def receive(*, sku: str, pieces: int, delivery: str, actor: str) -> StockMovement:
    """Book `pieces` of a product that came in with a delivery, and return the movement.

    `delivery` is the number on the delivery note: the same one brings a product once. `actor` is
    who books it. Raises `ProductNotFound`, `InvalidDelivery` and `AlreadyReceived`.
    """
    delivery = delivery.strip()
    if not 1 <= len(delivery) <= _LONGEST_NUMBER or not delivery.isprintable():
        raise InvalidDelivery(f"its number must be 1 to {_LONGEST_NUMBER} printable characters")
    if not 1 <= pieces <= MOST_PIECES:
        raise InvalidDelivery(f"its pieces must be 1 to {MOST_PIECES}")
    if "\x00" in sku:
        raise ProductNotFound("no SKU holds a NUL")
    product_id = Product.objects.filter(sku=sku.strip().upper()).values_list("pk", flat=True)
    with transaction.atomic():
        products = lock_products(product_id)
        if not products:
            raise ProductNotFound(f"there is no product {sku}")
        [product] = products.values()
        if product.stock + pieces > _MOST_ON_HAND:
            raise InvalidDelivery(f"there are {product.stock} pieces on hand already")
        event_id = f"delivery:{delivery}"
        try:
            with transaction.atomic():
                stock.apply_movements(
                    [stock.plan_receive(product.pk, pieces)],
                    event_id=event_id,
                    order_id=None,
                )
        except IntegrityError:
            raise AlreadyReceived(f"{product.sku} of delivery {delivery}") from None
        audit.record(
            actor=actor,
            action="goods received",
            subject=product,
            pieces=pieces,
            delivery=delivery,
        )
    log.info("goods_received", sku=product.sku, pieces=pieces)
    return StockMovement.objects.get(event_id=event_id, product=product)
