"""Orders and payments agree, whatever is reported of a transaction, in whatever order.

What the gateways mean is in `gateway_truth`, which knows nothing of the shop. What must be true
after each history is in `order_histories`; after a documented one the shop keeps what the gateway's
documents say.
"""

import random
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from orders.models import Order, Product
from payments.expiry import expire_unpaid_orders
from payments.models import Hold, Payment
from skincare.events.models import OutboxEvent
from tests.integration.orders.shop import a_product, aged
from tests.integration.payments import gateway_truth as truth
from tests.integration.payments.gateway_documents import midtrans_document
from tests.integration.payments.order_histories import (
    Undone,
    Worker,
    check,
    kept_of,
    new_order,
    notify,
)

pytestmark = pytest.mark.django_db

State = tuple[Any, ...]


def state_of(order: Order, words: list[str]) -> State:
    """All that the future depends on: what was reported, the payments, holds and events."""
    payments = Payment.objects.filter(order=order).order_by("created_at")
    return (
        frozenset(words),
        tuple(payments.values_list("status", "refunded_rupiah", "times_paid", "times_failed")),
        tuple(sorted(Hold.objects.filter(order=order).values_list("code", "reason"))),
        tuple(OutboxEvent.objects.order_by("id").values_list("event_type", flat=True)),
    )


class Tree:
    """All histories of one transaction, each word after each: sent, looked at, and taken back.

    Histories that leave the same state have the same future, so each state is looked at once, and
    gone on from once for each length that is left.
    """

    def __init__(self, order: Order, product: Product) -> None:
        self.order, self.product = order, product
        self.counted = 0
        self._can_be_shipped: dict[State, bool] = {}
        self._explored: set[tuple[State, int]] = set()

    def grow(self, words: list[str], more: int) -> None:
        for word in truth.WORDS:
            with suppress(Undone), transaction.atomic():
                history = [*words, word]
                notify("midtrans", midtrans_document(word, self.order.pk, "t-1"))
                state = self.look(history)
                if more > 1:
                    if (state, more) in self._explored:
                        self.counted += sum(len(truth.WORDS) ** n for n in range(1, more))
                    else:
                        self.grow(history, more - 1)
                        self._explored.add((state, more))
                raise Undone

    def look(self, history: list[str]) -> State:
        """Look at the end of a history; return its state."""
        self.counted += 1
        state = state_of(self.order, history)
        if state not in self._can_be_shipped:
            self._can_be_shipped[state] = self._process_all(history)
        if truth.is_documented(history):
            assert kept_of(self.order) == truth.kept_after(history), history
            in_full = truth.kept_after(history) == truth.TOTAL
            assert self._can_be_shipped[state] == in_full, history
        return state

    def _process_all(self, history: list[str]) -> bool:
        """Let a worker process what was published, in any order; look; and take that back."""
        with suppress(Undone), transaction.atomic():
            worker = Worker(self.order)
            events = worker.waiting()
            random.Random("".join(history)).shuffle(events)  # noqa: S311
            for event in events:
                worker.process(event)
            check(self.order, self.product, history)
            can_be_shipped = self.order.can_be_shipped
            if history[-1] in truth.IN_DOUBT or kept_of(self.order) or self.order.is_held:
                aged(self.order, timedelta(days=3))
                assert expire_unpaid_orders() == 0, history
            raise Undone
        return can_be_shipped


@pytest.fixture
def order() -> tuple[Order, Product]:
    product = a_product(stocked=10, price_rupiah=truth.TOTAL // 2)
    return new_order(product), product


def test_every_history_of_two_words_of_one_transaction(order: tuple[Order, Product]) -> None:
    tree = Tree(*order)

    tree.grow([], 2)

    assert tree.counted == 11 + 11**2


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_every_history_of_four_words_of_one_transaction(order: tuple[Order, Product]) -> None:
    tree = Tree(*order)

    tree.grow([], 4)

    assert tree.counted == 11 + 11**2 + 11**3 + 11**4
