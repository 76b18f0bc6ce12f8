"""The transition table: every cell, and that the order of arrival does not matter."""

from collections.abc import Iterator, Sequence
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments.status import OPEN, PAID, REFUND, UNPAID, PaymentStatus
from payments.transitions import TRANSITIONS, Apply, Duplicate, Hold, Stale, next_status

S = PaymentStatus

#: How late each state is in a gateway's history. Written apart from the table on purpose.
LATENESS = {
    S.PENDING: 0,
    S.AUTHORIZED: 1,
    S.CHALLENGED: 2,
    S.EXPIRED: 3,
    S.FAILED: 3,
    S.CAPTURED: 4,
    S.CANCELLED: 5,
    S.SETTLED: 6,
    S.DENIED: 7,
    S.PARTLY_REFUNDED: 8,
    S.REFUNDED: 9,
}
#: (payment, notified) that no history has.
CONTRADICTIONS = {
    (S.SETTLED, S.CANCELLED),
    (S.PARTLY_REFUNDED, S.CANCELLED),
    (S.DENIED, S.CAPTURED),
    (S.DENIED, S.SETTLED),
    (S.DENIED, S.PARTLY_REFUNDED),
    (S.DENIED, S.REFUNDED),
    (S.PARTLY_REFUNDED, S.DENIED),
    (S.REFUNDED, S.DENIED),
}
#: What may follow what: https://docs.midtrans.com/docs/transaction-status-cycle, and Xendit's
#: payments, which have the same states (authorized → settled at once, or failed).
HISTORY = {
    S.PENDING: [
        S.AUTHORIZED,
        S.CHALLENGED,
        S.CAPTURED,
        S.SETTLED,
        S.EXPIRED,
        S.CANCELLED,
        S.DENIED,
        S.FAILED,
    ],
    S.AUTHORIZED: [S.CHALLENGED, S.CAPTURED, S.SETTLED, S.CANCELLED, S.EXPIRED, S.FAILED],
    S.CHALLENGED: [S.CAPTURED, S.DENIED, S.CANCELLED, S.EXPIRED],
    S.CAPTURED: [S.SETTLED, S.CANCELLED],
    S.SETTLED: [S.DENIED, S.PARTLY_REFUNDED, S.REFUNDED],
    S.PARTLY_REFUNDED: [S.REFUNDED],
}


def histories(walk: tuple[S, ...] = (S.PENDING,)) -> Iterator[tuple[S, ...]]:
    """Every legal history, from pending to wherever it stops."""
    yield walk
    for following in HISTORY.get(walk[-1], []):
        yield from histories((*walk, following))


ALL_HISTORIES = list(histories())


def final_state(notified: Sequence[S]) -> S:
    """The state of a new payment after these notifications, in this order."""
    current = S.PENDING
    for status in notified:
        decision = next_status(current, status)
        if isinstance(decision, Apply):
            current = decision.status
    return current


@pytest.mark.parametrize(("current", "notified"), list(product(S, S)))
def test_every_cell(current: S, notified: S) -> None:
    decision = next_status(current, notified)

    if (current, notified) in CONTRADICTIONS:
        assert decision == Hold(f"{notified} was notified, but the payment is {current}")
    elif current is notified:
        assert decision == Duplicate()
    elif LATENESS[notified] > LATENESS[current]:
        assert decision == Apply(notified)
    else:
        assert decision == Stale(f"{notified} is earlier than {current}")


def test_the_table_has_every_pair_once() -> None:
    assert set(TRANSITIONS) == set(product(S, S))


def test_every_state_is_open_paid_or_unpaid() -> None:
    assert sorted([*OPEN, *PAID, *UNPAID]) == sorted(S)
    assert REFUND < PAID


@pytest.mark.parametrize("history", ALL_HISTORIES, ids=lambda walk: "-".join(walk))
def test_any_order_of_arrival_ends_in_the_same_state(history: tuple[S, ...]) -> None:
    ends = {final_state(arrival) for arrival in permutations(history)}

    assert ends == {history[-1]}


@settings(deadline=None)
@given(history=st.sampled_from(ALL_HISTORIES), data=st.data())
def test_repeats_in_any_order_end_in_the_same_state(
    history: tuple[S, ...], data: st.DataObject
) -> None:
    repeats = data.draw(st.lists(st.sampled_from(history), max_size=8))
    arrival = data.draw(st.permutations([*history, *repeats]))

    assert final_state(arrival) is history[-1]


@settings(deadline=None)
@given(arrival=st.lists(st.sampled_from(list(S)), max_size=12))
def test_money_that_came_in_is_only_lost_by_a_cancel_or_a_denial(arrival: list[S]) -> None:
    current = S.PENDING
    for status in arrival:
        decision = next_status(current, status)
        if isinstance(decision, Apply):
            if current in PAID and decision.status not in PAID:
                assert (current, decision.status) in {
                    (S.CAPTURED, S.CANCELLED),
                    (S.CAPTURED, S.DENIED),
                    (S.SETTLED, S.DENIED),
                }
            current = decision.status


@pytest.mark.parametrize(
    ("arrival", "end"),
    [
        ([S.SETTLED, S.PENDING], S.SETTLED),
        ([S.SETTLED, S.EXPIRED], S.SETTLED),
        ([S.EXPIRED, S.SETTLED], S.SETTLED),
        ([S.CHALLENGED, S.CAPTURED], S.CAPTURED),
        ([S.CAPTURED, S.CHALLENGED], S.CAPTURED),
        ([S.SETTLED, S.DENIED], S.DENIED),
        ([S.PARTLY_REFUNDED, S.SETTLED], S.PARTLY_REFUNDED),
        ([S.CAPTURED, S.CANCELLED], S.CANCELLED),
        ([S.CANCELLED, S.CAPTURED], S.CANCELLED),
    ],
)
def test_the_known_races(arrival: list[S], end: S) -> None:
    assert final_state(arrival) is end
