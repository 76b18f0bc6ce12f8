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

from orders.status import OrderStatus
from orders.stock import (
    Holding,
    Level,
    Movement,
    plan_difference,
    plan_receive,
    plan_reserve,
    shortages,
    stock_of_state,
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
        self.bring(order, OrderStatus.PAID)
        return order

    @rule(target=lapsed, order=consumes(unpaid))
    def lapse(self, order: int) -> int:
        self.bring(order, OrderStatus.EXPIRED)
        assert all(held == Holding() for held in self.holdings(order).values())
        return order

    @rule(target=paid, order=consumes(lapsed))
    def pay_late(self, order: int) -> int:
        self.bring(order, OrderStatus.PAID)
        return order

    @rule(target=unpaid, order=consumes(paid))
    def reverse(self, order: int) -> int:
        self.bring(order, OrderStatus.PENDING)
        return order

    @rule(target=lapsed, order=consumes(paid))
    def refund(self, order: int) -> int:
        self.bring(order, OrderStatus.REFUNDED)
        assert all(held == Holding() for held in self.holdings(order).values())
        return order

    def bring(self, order: int, status: OrderStatus) -> None:
        """Take all that the state needs, or, where it is gone from the shelf, none of it."""
        target = stock_of_state(self.carts[order], status)
        before = self.holdings(order)
        movements, short = plan_difference(target, before, self.levels)
        self.apply(order, movements)
        after = self.holdings(order)
        if not short:
            assert {p: held for p, held in after.items() if held != Holding()} == {
                p: held for p, held in target.items() if held != Holding()
            }
            assert plan_difference(target, after, self.levels) == ([], [])
        else:
            pieces = {p: held.reserved + held.sold for p, held in after.items()}
            assert all(pieces.get(p, 0) == held.reserved + held.sold for p, held in before.items())

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


def test_what_an_order_holds_already_is_not_taken_twice() -> None:
    held = {1: Holding(reserved=2), 2: Holding(sold=1)}
    target = {1: Holding(sold=2), 2: Holding(sold=3)}

    movements, short = plan_difference(target, held, {1: Level(2, 2), 2: Level(2, 0)})

    assert short == []
    assert [(m.product_id, m.kind, m.stock_delta, m.reserved_delta) for m in movements] == [
        (1, "sell", -2, -2),
        (2, "retake", -2, 0),
    ]


def test_with_a_shortage_nothing_is_taken_and_what_is_held_still_changes() -> None:
    held = {1: Holding(reserved=2), 2: Holding()}
    target = {1: Holding(sold=2), 2: Holding(sold=1)}

    movements, short = plan_difference(target, held, {1: Level(2, 2), 2: Level(0, 0)})

    assert [one.product_id for one in short] == [2]
    assert [(m.product_id, m.kind) for m in movements] == [(1, "sell")]
