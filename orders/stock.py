"""Stock: what moves is planned by pure functions and applied, with its ledger, under row locks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from orders import ledger
from orders.ledger import Movement
from orders.models import Order, OrderLine, Product, StockMovement
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


def lines_with_holdings(order: Order) -> tuple[list[OrderLine], dict[int, Holding]]:
    """Return the lines of a locked order, and what it holds by its movements, by product id."""
    found = ledger.read_lines(order)
    return [line for line, _, _ in found], {
        line.product_id: Holding(reserved=reserved, sold=sold) for line, reserved, sold in found
    }


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


def takes_from_shelf(target: Mapping[int, Holding], holdings: Mapping[int, Holding]) -> bool:
    """Whether an order needs pieces that it does not hold yet."""
    return any(
        wanted.reserved + wanted.sold > held.reserved + held.sold
        for wanted, held in _both(target, holdings).values()
    )


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


def apply_movements(movements: Sequence[Movement], *, event_id: str, order_id: UUID | None) -> None:
    """Write `movements` to the ledger and to their products.

    `event_id` is what causes them. A delivery, which is for no order, can move a product once.
    Raises `django.db.IntegrityError` where a product's numbers cannot be so.
    """
    if movements:
        ledger.write(movements, event_id=event_id, order_id=order_id)


def reserve(wanted: Mapping[int, int], *, event_id: str, order_id: UUID) -> list[Shortage]:
    """Set `wanted` pieces by product id aside for an order, where that many are available.

    Returns the products of which fewer are: then the caller must roll back. The products are locked
    from here to the end of the transaction, so call it last: many buyers may want the same one.
    """
    movements = plan_reserve(wanted)
    moved = ledger.write(movements, event_id=event_id, order_id=order_id, only_available=True)
    lacking = Product.objects.filter(pk__in=wanted.keys() - moved) if moved != set(wanted) else []
    return [Shortage(product.pk, wanted[product.pk], product.available) for product in lacking]
