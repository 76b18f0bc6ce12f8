"""The order's transition table, over every pair of states."""

from itertools import product

import pytest

from orders.exceptions import TransitionRefused
from orders.status import (
    ENDED_UNPAID,
    TRANSITIONS,
    OrderStatus,
    can_become,
    next_status,
)

S = OrderStatus
MONEY = {S.PAID, S.PARTLY_REFUNDED, S.REFUNDED}
ALLOWED = {
    # Money moves an order between its states of money, wherever it is.
    *((before, after) for before in OrderStatus for after in MONEY if before is not after),
    (S.PARTLY_REFUNDED, S.PARTLY_REFUNDED),
    # What loses its money waits again, or is given up where its goods are out.
    *((before, after) for before in MONEY for after in (S.PENDING, S.CANCELLED)),
    # Only a waiting order ends unpaid.
    (S.PENDING, S.CANCELLED),
    (S.PENDING, S.EXPIRED),
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


def test_an_order_that_ended_unpaid_never_waits_again() -> None:
    for state in ENDED_UNPAID:
        assert not can_become(state, S.PENDING)


def test_an_unpaid_state_can_always_still_be_paid() -> None:
    for state in (S.PENDING, S.CANCELLED, S.EXPIRED):
        assert can_become(state, S.PAID)
