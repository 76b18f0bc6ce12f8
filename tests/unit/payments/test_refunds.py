"""Refunds add up in any order, and never to more than was paid."""

from datetime import UTC, datetime
from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments.providers.base import GatewayRefund
from payments.refunds import RefundPlan, plan_refunds
from payments.status import PaymentStatus
from payments.transitions import Hold

THEN = datetime(2026, 11, 12, tzinfo=UTC)


def refund(key: str, amount: Any) -> GatewayRefund:
    rupiah = None if amount is None else Decimal(amount)
    return GatewayRefund(key=key, amount=rupiah, kind="refund", refunded_at=THEN)


def plan(
    *refunds: GatewayRefund, recorded: dict[str, int] | None = None, in_full: bool = False
) -> RefundPlan | Hold:
    return plan_refunds(
        amount_rupiah=10000, recorded=recorded or {}, notified=refunds, in_full=in_full
    )


def new_keys(answer: RefundPlan | Hold) -> dict[str, int]:
    assert isinstance(answer, RefundPlan)
    return {one.key: one.amount_rupiah for one in answer.new}


def test_a_first_part() -> None:
    answer = plan(refund("r1", "4000.00"))

    assert new_keys(answer) == {"r1": 4000}
    assert isinstance(answer, RefundPlan)
    assert (answer.total_rupiah, answer.status) == (4000, PaymentStatus.PARTLY_REFUNDED)


def test_the_rest_makes_it_full() -> None:
    answer = plan(refund("r2", 6000), recorded={"r1": 4000})

    assert new_keys(answer) == {"r2": 6000}
    assert isinstance(answer, RefundPlan)
    assert (answer.total_rupiah, answer.status) == (10000, PaymentStatus.REFUNDED)


def test_a_list_with_a_known_and_a_new_refund() -> None:
    assert new_keys(plan(refund("r1", 4000), refund("r2", 1000), recorded={"r1": 4000})) == {
        "r2": 1000
    }


def test_a_known_refund_is_not_new() -> None:
    assert new_keys(plan(refund("r1", 4000), recorded={"r1": 4000})) == {}


def test_all_that_is_left() -> None:
    assert new_keys(plan(refund("refund", None), recorded={"r1": 4000}, in_full=True)) == {
        "refund": 6000
    }


def test_all_that_is_left_of_nothing() -> None:
    assert new_keys(plan(refund("refund", None), recorded={"r1": 10000}, in_full=True)) == {}


def test_all_that_is_left_told_again() -> None:
    recorded = {"r1": 4000, "refund": 6000}

    assert new_keys(plan(refund("refund", None), recorded=recorded, in_full=True)) == {}


@pytest.mark.parametrize(
    ("refunds", "recorded", "reason"),
    [
        ([refund("r1", 10001)], {}, "refunds add up to 10001 of 10000 rupiah paid"),
        ([refund("r2", 6001)], {"r1": 4000}, "refunds add up to 10001 of 10000 rupiah paid"),
        ([refund("r1", 4001)], {"r1": 4000}, "refund r1 was 4000 rupiah before, now 4001"),
        ([refund("r1", "4000.50")], {}, "refund r1 of 4000.50 is not whole rupiah"),
        ([refund("r1", 0)], {}, "refund r1 of 0 rupiah"),
    ],
)
def test_held_for_a_person(
    refunds: list[GatewayRefund], recorded: dict[str, int], reason: str
) -> None:
    assert plan(*refunds, recorded=recorded) == Hold(reason)


def test_full_by_word_but_not_by_sum_is_held() -> None:
    assert plan(refund("r1", 4000), in_full=True) == Hold(
        "refunded in full, but refunds add up to 4000 of 10000 rupiah"
    )


@settings(deadline=None)
@given(
    amounts=st.lists(st.integers(min_value=1, max_value=4000), min_size=1, max_size=4),
    repeats=st.integers(min_value=1, max_value=2),
)
def test_any_order_adds_up_to_the_same(amounts: list[int], repeats: int) -> None:
    parts = [refund(f"r{number}", amount) for number, amount in enumerate(amounts)]
    for arrival in permutations(parts):
        recorded: dict[str, int] = {}
        held = False
        for part in [*arrival] * repeats:
            answer = plan(part, recorded=recorded)
            if isinstance(answer, Hold):
                held = True
            else:
                recorded |= new_keys(answer)
            assert sum(recorded.values()) <= 10000
        if sum(amounts) <= 10000:
            assert not held
            assert sum(recorded.values()) == sum(amounts)
        else:
            assert held
