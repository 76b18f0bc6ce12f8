"""The order's transition table, over every pair of states."""

from itertools import product

import pytest

from orders.status import (
    SETTLED,
    TRANSITIONS,
    OrderStatus,
    TransitionRefused,
    can_become,
    next_status,
)

S = OrderStatus
ALLOWED = {
    (S.PENDING, S.PAID),
    (S.PENDING, S.CANCELLED),
    (S.PENDING, S.EXPIRED),
    (S.PAID, S.PARTLY_REFUNDED),
    (S.PAID, S.REFUNDED),
    (S.PAID, S.CANCELLED),
    (S.PARTLY_REFUNDED, S.PARTLY_REFUNDED),
    (S.PARTLY_REFUNDED, S.REFUNDED),
    (S.CANCELLED, S.PAID),
    (S.EXPIRED, S.PAID),
}


@pytest.mark.parametrize(("current", "wanted"), list(product(OrderStatus, repeat=2)))
def test_every_pair(current: OrderStatus, wanted: OrderStatus) -> None:
    if (current, wanted) in ALLOWED:
        assert can_become(current, wanted)
        assert next_status(current, wanted) is wanted
    else:
        assert not can_become(current, wanted)
        with pytest.raises(TransitionRefused) as refused:
            next_status(current, wanted)
        assert str(refused.value) == f"an order that is {current} cannot become {wanted}"


def test_the_table_names_every_state() -> None:
    assert set(TRANSITIONS) == set(OrderStatus)


def test_money_can_go_back_exactly_where_the_shop_holds_it() -> None:
    refundable = {state for state in OrderStatus if can_become(state, S.REFUNDED)}

    assert refundable == SETTLED


def test_an_unpaid_state_can_always_still_be_paid() -> None:
    for state in (S.PENDING, S.CANCELLED, S.EXPIRED):
        assert can_become(state, S.PAID)
