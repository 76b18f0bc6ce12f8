"""The locks of the shop, in the one order in which all transactions take them.

Order, then Payment (`payments.locks`), then Product rows by primary key. Whoever holds a locked
object passes it on: nobody locks or loads it a second time.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.transaction import TransactionManagementError

from orders import rows
from orders.exceptions import OrderNotFound
from orders.models import Order, Product
from orders.rows import Row


def read_locked(model: type[Row], where: str, values: Sequence[Any]) -> list[Row]:
    """Return the rows that meet an SQL condition, locked until the transaction ends.

    Raises TransactionManagementError outside of one, as `select_for_update` does.
    """
    if not connection.in_atomic_block:
        raise TransactionManagementError("rows can be locked in a transaction only")
    # NO KEY: rows that merely point at these (a payment, a line) may be inserted meanwhile.
    return rows.read(model, f"{where} FOR NO KEY UPDATE", values)


def lock_order(order_id: UUID | str) -> Order:
    """Return the order, locked until the transaction ends. Raises `OrderNotFound`."""
    found = read_locked(Order, "id = %s", [order_id])
    if not found:
        raise OrderNotFound(f"there is no order {order_id}")
    return found[0]


def lock_products(product_ids: Iterable[int]) -> dict[int, Product]:
    """Lock these products until the transaction ends, by ascending primary key, so that no two
    transactions can wait for each other. Lock the order first.
    """
    products = Product.objects.select_for_update(no_key=True).filter(pk__in=product_ids)
    return {product.pk: product for product in products.order_by("pk")}
