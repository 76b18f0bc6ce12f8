"""Stock: what moves is planned by pure functions and applied, with its ledger, under row locks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Sum

from orders.models import OrderLine, Product, StockMovement

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


def outstanding(wanted: Mapping[int, int], holdings: Mapping[int, Holding]) -> dict[int, int]:
    """Return the pieces by product id that an order wants and neither reserves nor was sold."""
    held = {p: holding.reserved + holding.sold for p, holding in holdings.items()}
    return {p: pieces - held.get(p, 0) for p, pieces in wanted.items() if pieces > held.get(p, 0)}


def plan_receive(product_id: int, pieces: int) -> Movement:
    """Goods came in."""
    return Movement(product_id, Kind.RECEIVE, stock_delta=pieces)


def plan_reserve(wanted: Mapping[int, int]) -> list[Movement]:
    """Checkout: set `wanted` pieces aside. The caller has found no shortages."""
    return [Movement(p, Kind.RESERVE, reserved_delta=pieces) for p, pieces in wanted.items()]


def plan_retake(wanted: Mapping[int, int]) -> list[Movement]:
    """Paid after the reservation was given back. The caller has found no shortages."""
    return [Movement(p, Kind.RETAKE, stock_delta=-pieces) for p, pieces in wanted.items()]


def plan_sell(holdings: Mapping[int, Holding]) -> list[Movement]:
    """Paid: what was reserved leaves the shelf."""
    return [
        Movement(p, Kind.SELL, stock_delta=-held.reserved, reserved_delta=-held.reserved)
        for p, held in holdings.items()
        if held.reserved
    ]


def plan_release(holdings: Mapping[int, Holding]) -> list[Movement]:
    """Cancelled or expired unpaid: what was reserved is for sale again."""
    return [
        Movement(p, Kind.RELEASE, reserved_delta=-held.reserved)
        for p, held in holdings.items()
        if held.reserved
    ]


def plan_return(holdings: Mapping[int, Holding]) -> list[Movement]:
    """All money went back before shipping: what was sold is on the shelf again."""
    return [
        Movement(p, Kind.RETURN, stock_delta=held.sold) for p, held in holdings.items() if held.sold
    ]


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


def apply_movements(
    movements: Sequence[Movement],
    products: Mapping[int, Product],
    *,
    event_id: str,
    order_id: UUID | None,
) -> None:
    """Write `movements` to the ledger and to the locked `products`.

    `event_id` is the event that causes them; it can move each product once.
    """
    if not movements:
        return
    StockMovement.objects.bulk_create(
        StockMovement(
            event_id=event_id,
            product_id=movement.product_id,
            order_id=order_id,
            kind=movement.kind,
            stock_delta=movement.stock_delta,
            reserved_delta=movement.reserved_delta,
        )
        for movement in movements
    )
    moved = []
    for movement in movements:
        product = products[movement.product_id]
        product.stock += movement.stock_delta
        product.reserved += movement.reserved_delta
        moved.append(product)
    Product.objects.bulk_update(moved, ["stock", "reserved"])
