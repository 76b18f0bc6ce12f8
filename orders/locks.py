"""The locks of the shop, in the one order in which all transactions take them.

Order, then Payment (`payments.locks`), then Product rows by primary key. Whoever holds a locked
object passes it on: nobody locks or loads it a second time.
"""

from collections.abc import Iterable
from uuid import UUID

from django.db.models.expressions import Combinable

from orders.exceptions import OrderNotFound
from orders.models import Order, Product


def lock_order(order_id: UUID | str | Combinable) -> Order:
    """Return the order, locked until the transaction ends. Raises `OrderNotFound`.

    `order_id` may be an expression, where the statement has to find out which order it is.
    """
    # NO KEY: rows that merely point at the order (a payment, a line) may be inserted meanwhile.
    order = Order.objects.select_for_update(no_key=True).filter(pk=order_id).first()
    if order is None:
        raise OrderNotFound(f"there is no order {order_id}")
    return order


def lock_products(product_ids: Iterable[int]) -> dict[int, Product]:
    """Lock these products until the transaction ends, by ascending primary key, so that no two
    transactions can wait for each other. Lock the order first.
    """
    products = Product.objects.select_for_update(no_key=True).filter(pk__in=product_ids)
    return {product.pk: product for product in products.order_by("pk")}
