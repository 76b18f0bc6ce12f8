"""Stock: what moves is planned by pure functions and applied, with its ledger, under row locks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

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
    """Write `movements` to the ledger and to the locked `products`.

    `event_id` is what causes them. A delivery, which is for no order, can move a product once.
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
