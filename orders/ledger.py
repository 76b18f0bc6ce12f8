"""The ledger: what moves is written with its movements in one statement, all of it or nothing.

One round trip in place of six, so that a product that many want is locked as shortly as it can be.
Products are locked by ascending primary key, as everywhere; who had to wait for one sees, in
conditions and sums, what the other left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection

from orders.models import Order, OrderLine, Product
from skincare.events.statements import prepared_cursor


@dataclass(frozen=True)
class Movement:
    """One planned change of a product's numbers."""

    product_id: int
    kind: str
    stock_delta: int = 0
    reserved_delta: int = 0


#: Moves products with their part of the search entry, and writes the movements.
_STOCK: Final = """
movement AS (
    SELECT * FROM unnest(
        %(product_ids)s::bigint[], %(kinds)s::text[], %(stock)s::int[], %(reserved)s::int[]
    ) AS movement (product_id, kind, stock_delta, reserved_delta)
), locked AS (
    SELECT id FROM orders_product WHERE id = ANY(%(product_ids)s::bigint[])
    ORDER BY id FOR NO KEY UPDATE
), moved AS (
    UPDATE orders_product AS product SET
        stock = stock + stock_delta,
        reserved = reserved + reserved_delta,
        search_in_stock = stock + stock_delta > reserved + reserved_delta,
        search_refreshed_at = clock_timestamp()
    FROM movement JOIN locked ON locked.id = product_id
    WHERE product.id = product_id
      AND (NOT %(only_available)s OR stock + stock_delta >= reserved + reserved_delta)
    RETURNING product.id
), written AS (
    INSERT INTO orders_stockmovement
        (event_id, product_id, order_id, kind, stock_delta, reserved_delta, created_at)
    SELECT %(event_id)s, product_id, %(order_id)s::uuid, kind, stock_delta, reserved_delta,
           clock_timestamp()
    FROM movement JOIN moved ON moved.id = product_id ORDER BY product_id
    RETURNING product_id
)
"""
#: Moves an order, and writes the transition.
_ORDER: Final = """
changed AS (
    UPDATE orders_order SET
        status = %(to_status)s, refunded_rupiah = %(refunded)s, paid_at = %(paid_at)s,
        updated_at = clock_timestamp()
    WHERE id = %(order_id)s::uuid
), noted AS (
    INSERT INTO orders_ordertransition
        (event_id, order_id, from_status, to_status, reason, created_at)
    VALUES (%(event_id)s, %(order_id)s::uuid, %(from_status)s, %(to_status)s, %(reason)s,
            clock_timestamp())
)
"""
_WRITE: Final = f"WITH {_STOCK} SELECT product_id FROM written"  # noqa: S608 constants
_WRITE_ORDER: Final = f"WITH {_ORDER}, {_STOCK} SELECT product_id FROM written"  # noqa: S608


def write(
    movements: Sequence[Movement],
    *,
    event_id: str,
    order_id: UUID | None,
    only_available: bool = False,
) -> set[int]:
    """Write `movements`, at most one for each product, and bring the products to them.

    `only_available`: leave out those for which fewer pieces are available than they take. Returns
    the ids of the products that were moved. Raises `django.db.IntegrityError` where a product's
    numbers cannot be so.
    """
    parameters = _stock(movements, event_id=event_id, order_id=order_id)
    return _execute(_WRITE, {**parameters, "only_available": only_available})


def write_order(
    order: Order, movements: Sequence[Movement], *, before: str, event_id: str, reason: str
) -> None:
    """Write a locked order's status, refunded rupiah and time of payment, the transition from
    `before`, and its movements. Raises as `write` does.
    """
    _execute(
        _WRITE_ORDER,
        {
            **_stock(movements, event_id=event_id, order_id=order.pk),
            "only_available": False,
            "from_status": str(before),
            "to_status": str(order.status),
            "refunded": order.refunded_rupiah,
            "paid_at": order.paid_at,
            "reason": reason,
        },
    )


_LINE: Final = [field.attname for field in OrderLine._meta.concrete_fields]
#: Each line of an order, and what the order holds of its product by the movements. Of the product
#: only what an email shows is read.
_LINES: Final = f"""
SELECT {", ".join(f"line.{name}" for name in _LINE)}, product.picture,
       COALESCE(sum(reserved_delta), 0), COALESCE(-sum(stock_delta), 0)
FROM orders_orderline AS line
JOIN orders_product AS product ON product.id = line.product_id
LEFT JOIN orders_stockmovement AS movement
    ON movement.order_id = line.order_id AND movement.product_id = line.product_id
WHERE line.order_id = %s
GROUP BY line.id, product.picture ORDER BY line.id
"""  # noqa: S608  (constants)


def read_lines(order: Order) -> list[tuple[OrderLine, int, int]]:
    """Return the lines of a locked order with their products, each with the pieces of it that are
    reserved for the order, and those that are sold to it.
    """
    with prepared_cursor() as cursor:
        cursor.execute(_LINES, [order.pk])
        found = cursor.fetchall()
    lines = []
    for *values, picture, reserved, sold in found:
        line = OrderLine.from_db(connection.alias, _LINE, values)
        line.order = order
        line.product = Product.from_db(
            connection.alias, ["id", "picture"], [line.product_id, picture]
        )
        lines.append((line, reserved, sold))
    return lines


def _stock(
    movements: Sequence[Movement], *, event_id: str, order_id: UUID | None
) -> dict[str, Any]:
    product_ids = [movement.product_id for movement in movements]
    if len(set(product_ids)) != len(product_ids):
        raise ValueError(f"{event_id} moves a product twice")
    return {
        "product_ids": product_ids,
        "kinds": [str(movement.kind) for movement in movements],
        "stock": [movement.stock_delta for movement in movements],
        "reserved": [movement.reserved_delta for movement in movements],
        "event_id": event_id,
        "order_id": order_id,
    }


def _execute(statement: str, parameters: dict[str, Any]) -> set[int]:
    with prepared_cursor() as cursor:
        cursor.execute(statement, parameters)
        return {row[0] for row in cursor.fetchall()}
