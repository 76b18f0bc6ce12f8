"""The pure stock plans, driven through every order of events that an order can see."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
)

from orders.stock import (
    Holding,
    Level,
    Movement,
    outstanding,
    plan_receive,
    plan_release,
    plan_reserve,
    plan_retake,
    plan_return,
    plan_sell,
    shortages,
)

PRODUCTS = (1, 2, 3)
carts = st.dictionaries(st.sampled_from(PRODUCTS), st.integers(1, 5), min_size=1)


class Shop(RuleBasedStateMachine):
    """A shelf, its ledger, and what each order holds by that ledger."""

    unpaid = Bundle("unpaid")
    paid = Bundle("paid")
    lapsed = Bundle("lapsed")

    def __init__(self) -> None:
        super().__init__()
        self.levels = {product: Level(stock=8, reserved=0) for product in PRODUCTS}
        self.ledger: list[tuple[int | None, Movement]] = [
            (None, plan_receive(product, 8)) for product in PRODUCTS
        ]
        self.carts: list[dict[int, int]] = []

    def apply(self, order: int | None, movements: list[Movement]) -> None:
        for movement in movements:
            level = self.levels[movement.product_id]
            self.levels[movement.product_id] = Level(
                level.stock + movement.stock_delta, level.reserved + movement.reserved_delta
            )
            self.ledger.append((order, movement))

    def holdings(self, order: int) -> dict[int, Holding]:
        held: dict[int, Holding] = {}
        for owner, movement in self.ledger:
            if owner == order:
                before = held.get(movement.product_id, Holding())
                held[movement.product_id] = Holding(
                    before.reserved + movement.reserved_delta, before.sold - movement.stock_delta
                )
        return held

    @rule(target=unpaid, cart=carts)
    def check_out(self, cart: dict[int, int]) -> int | MultipleResults[int]:
        if shortages(cart, self.levels):
            return multiple()
        self.carts.append(cart)
        order = len(self.carts) - 1
        self.apply(order, plan_reserve(cart))
        return order

    @rule(product=st.sampled_from(PRODUCTS), pieces=st.integers(1, 4))
    def receive(self, product: int, pieces: int) -> None:
        self.apply(None, [plan_receive(product, pieces)])

    @rule(target=paid, order=consumes(unpaid))
    def pay(self, order: int) -> int:
        self.settle(order)
        return order

    @rule(target=lapsed, order=consumes(unpaid))
    def lapse(self, order: int) -> int:
        self.apply(order, plan_release(self.holdings(order)))
        assert all(held == Holding() for held in self.holdings(order).values())
        return order

    @rule(target=paid, order=consumes(lapsed))
    def pay_late(self, order: int) -> int:
        self.settle(order)
        return order

    @rule(target=lapsed, order=consumes(paid))
    def reverse(self, order: int) -> int:
        self.apply(order, plan_return(self.holdings(order)))
        assert all(held == Holding() for held in self.holdings(order).values())
        return order

    def settle(self, order: int) -> None:
        """Take all of the cart, or, where it is gone from the shelf, nothing of it."""
        holdings = self.holdings(order)
        movements = plan_sell(holdings)
        rest = outstanding(self.carts[order], holdings)
        taken = not shortages(rest, self.levels)
        if taken:
            movements += plan_retake(rest)
        self.apply(order, movements)
        sold = {p: held.sold for p, held in self.holdings(order).items() if held.sold}
        assert sold == (self.carts[order] if taken else {})

    @invariant()
    def no_product_is_oversold(self) -> None:
        for level in self.levels.values():
            assert 0 <= level.reserved <= level.stock

    @invariant()
    def the_ledger_adds_up_to_the_shelf(self) -> None:
        for product, level in self.levels.items():
            moves = [movement for _, movement in self.ledger if movement.product_id == product]
            assert sum(move.stock_delta for move in moves) == level.stock
            assert sum(move.reserved_delta for move in moves) == level.reserved


TestShop = Shop.TestCase
TestShop.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_shortage_says_what_is_there() -> None:
    (shortage,) = shortages({1: 3, 2: 1}, {1: Level(5, 3), 2: Level(1, 0)})

    assert (shortage.product_id, shortage.wanted, shortage.available) == (1, 3, 2)


def test_what_an_order_has_is_not_outstanding() -> None:
    held = {1: Holding(reserved=2), 2: Holding(sold=1)}

    assert outstanding({1: 2, 2: 3, 3: 1}, held) == {2: 2, 3: 1}


def test_a_plan_moves_nothing_that_an_order_does_not_hold() -> None:
    nothing = {1: Holding()}

    assert plan_sell(nothing) == plan_release(nothing) == plan_return(nothing) == []
