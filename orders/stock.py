"""Stock: what moves is planned by pure functions and applied, with its ledger, under row locks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Sum

from orders.models import OrderLine, Product, StockMovement
from orders.status import OrderStatus

Kind = StockMovement.Kind


@dataclass(frozen=True)
class Level:
    """A product's numbers: pieces on hand, and those of them that unpaid orders hold."""

    stock: int
    reserved: int

    @property
    def available(self) -> int:
        return self.stock - self.reserved


@dataclass(frozen=True)
class Holding:
    """What one order holds of one product: pieces reserved for it, and pieces sold to it."""

    reserved: int = 0
    sold: int = 0


@dataclass(frozen=True)
class Movement:
    """One planned change of a product's numbers."""

    product_id: int
    kind: str
    stock_delta: int = 0
    reserved_delta: int = 0


@dataclass(frozen=True)
class Shortage:
    """A product of which fewer pieces are available than wanted."""

    product_id: int
    wanted: int
    available: int


def shortages(wanted: Mapping[int, int], levels: Mapping[int, Level]) -> list[Shortage]:
    """Return the products of `wanted` (pieces by product id) that `levels` cannot serve."""
    return [
        Shortage(product_id, pieces, levels[product_id].available)
        for product_id, pieces in wanted.items()
        if pieces > levels[product_id].available
    ]


def plan_receive(product_id: int, pieces: int) -> Movement:
    """Goods came in."""
    return Movement(product_id, Kind.RECEIVE, stock_delta=pieces)


def plan_reserve(wanted: Mapping[int, int]) -> list[Movement]:
    """Checkout: set `wanted` pieces aside. The caller has found no shortages."""
    return [Movement(p, Kind.RESERVE, reserved_delta=pieces) for p, pieces in wanted.items()]


def levels_of(products: Mapping[int, Product]) -> dict[int, Level]:
    """Return the numbers of locked products."""
    return {pk: Level(product.stock, product.reserved) for pk, product in products.items()}


def wanted_by(order_id: UUID) -> dict[int, int]:
    """Return the pieces that an order is for, by product id."""
    lines = OrderLine.objects.filter(order_id=order_id).order_by("product_id")
    return dict(lines.values_list("product_id", "quantity"))


def holdings_of(order_id: UUID) -> dict[int, Holding]:
    """Return what an order holds by its movements, by product id."""
    sums = (
        StockMovement.objects.filter(order_id=order_id)
        .order_by("product_id")
        .values_list("product_id")
        .annotate(reserved=Sum("reserved_delta"), moved=Sum("stock_delta"))
    )
    return {p: Holding(reserved=reserved, sold=-moved) for p, reserved, moved in sums}


def stock_of_state(wanted: Mapping[int, int], status: OrderStatus) -> dict[int, Holding]:
    """Return what an order for `wanted` pieces by product id has to hold in this state."""
    match status:
        case OrderStatus.PENDING:
            return {p: Holding(reserved=pieces) for p, pieces in wanted.items()}
        case OrderStatus.PAID | OrderStatus.PARTLY_REFUNDED:
            return {p: Holding(sold=pieces) for p, pieces in wanted.items()}
        case _:
            return {p: Holding() for p in wanted}


def plan_difference(
    target: Mapping[int, Holding],
    holdings: Mapping[int, Holding],
    levels: Mapping[int, Level],
) -> tuple[list[Movement], list[Shortage]]:
    """Return the movements that bring an order from `holdings` to `target`, by product id.

    An order takes from the shelf all that it lacks, or nothing: with a shortage, what it holds
    already still changes from reserved to sold, or back.
    """
    claims = {
        p: (wanted.reserved + wanted.sold) - (held.reserved + held.sold)
        for p, (wanted, held) in _both(target, holdings).items()
    }
    short = shortages({p: more for p, more in claims.items() if more > 0}, levels)
    movements = []
    for product, (wanted, held) in _both(target, holdings).items():
        if short and claims[product] > 0:
            kept = held.reserved + held.sold
            wanted = Holding(sold=kept) if wanted.sold else Holding(reserved=kept)
        if wanted != held:
            movements.append(
                Movement(
                    product,
                    _kind(held, wanted),
                    stock_delta=held.sold - wanted.sold,
                    reserved_delta=wanted.reserved - held.reserved,
                )
            )
    return movements, short


def _both(
    target: Mapping[int, Holding], holdings: Mapping[int, Holding]
) -> dict[int, tuple[Holding, Holding]]:
    products = sorted({*target, *holdings})
    return {p: (target.get(p, Holding()), holdings.get(p, Holding())) for p in products}


def _kind(held: Holding, wanted: Holding) -> str:
    if wanted.sold > held.sold:
        return Kind.SELL if held.reserved else Kind.RETAKE
    if wanted.sold < held.sold:
        return Kind.UNSELL if wanted.reserved else Kind.RETURN
    return Kind.RESERVE if wanted.reserved > held.reserved else Kind.RELEASE


def apply_movements(
    movements: Sequence[Movement],
    products: Mapping[int, Product],
    *,
    event_id: str,
    order_id: UUID | None,
) -> None:
    """Write `movements` to the ledger and to `products`.

    `event_id` is what causes them. A delivery, which is for no order, can move a product once.
    Raises `django.db.IntegrityError` where a product's numbers cannot be so.
    """
    _move(movements, event_id=event_id, order_id=order_id, only_available=False)
    for movement in movements:
        product = products[movement.product_id]
        product.stock += movement.stock_delta
        product.reserved += movement.reserved_delta


def reserve(wanted: Mapping[int, int], *, event_id: str, order_id: UUID) -> list[Shortage]:
    """Set `wanted` pieces by product id aside for an order, where so many are available.

    Returns the products of which fewer are: then the caller must roll back. The products are locked
    from here to the end of the transaction, so call it last: many buyers may want the same one.
    """
    movements = plan_reserve(wanted)
    moved = _move(movements, event_id=event_id, order_id=order_id, only_available=True)
    lacking = Product.objects.filter(pk__in=wanted.keys() - moved) if moved != set(wanted) else []
    return [Shortage(product.pk, wanted[product.pk], product.available) for product in lacking]


#: One statement in place of four, so that a product that many want is locked for one round trip.
#: The rows are locked by ascending primary key, as everywhere; who had to wait sees, in both
#: conditions and sums, what the other one left.
_MOVE: Final = """
WITH movement AS (
    SELECT * FROM unnest(
        %(product_ids)s::bigint[], %(kinds)s::text[], %(stock)s::int[], %(reserved)s::int[]
    ) AS movement (product_id, kind, stock_delta, reserved_delta)
), locked AS (
    SELECT id FROM orders_product WHERE id = ANY(%(product_ids)s)
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
)
INSERT INTO orders_stockmovement
    (event_id, product_id, order_id, kind, stock_delta, reserved_delta, created_at)
SELECT %(event_id)s, product_id, %(order_id)s, kind, stock_delta, reserved_delta, clock_timestamp()
FROM movement JOIN moved ON moved.id = product_id ORDER BY product_id
RETURNING product_id
"""


def _move(
    movements: Sequence[Movement], *, event_id: str, order_id: UUID | None, only_available: bool
) -> set[int]:
    """Return the ids of the products that were moved."""
    product_ids = [movement.product_id for movement in movements]
    if len(set(product_ids)) != len(product_ids):
        raise ValueError(f"a product is moved twice by {event_id}")
    if not movements:
        return set()
    parameters: dict[str, Any] = {
        "product_ids": product_ids,
        "kinds": [str(movement.kind) for movement in movements],
        "stock": [movement.stock_delta for movement in movements],
        "reserved": [movement.reserved_delta for movement in movements],
        "event_id": event_id,
        "order_id": order_id,
        "only_available": only_available,
    }
    with connection.cursor() as cursor:
        cursor.execute(_MOVE, parameters)
        return {row[0] for row in cursor.fetchall()}
