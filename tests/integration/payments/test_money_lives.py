"""Lives of orders with two transactions and two gateways, workers, sweeps and people.

What must be true after each is in `order_histories`.
"""

import random
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction

from orders.models import Order, Product
from payments import decisions
from payments.cancelling import cancel_for_buyer
from payments.exceptions import AlreadyRequested, CannotDecide, OrderNotCancellable
from payments.expiry import expire_unpaid_orders
from payments.hold_codes import FOUR_EYES
from payments.holds import open_holds
from payments.models import Payment
from payments.restocking import serve_out_of_stock
from tests.integration.orders.shop import a_product, aged
from tests.integration.payments import gateway_truth as truth
from tests.integration.payments.gateway_documents import midtrans_document, xendit_document
from tests.integration.payments.order_histories import (
    Undone,
    Worker,
    check,
    kept_of,
    new_order,
    notify,
)

pytestmark = pytest.mark.django_db


def play(seed: int, product: Product, ayu: Any, budi: Any) -> None:
    """One order's life, drawn by `seed`: reports, workers, sweeps and decisions in any order."""
    draw = random.Random(seed)  # noqa: S311
    order = new_order(product)
    worker = Worker(order)
    history: list[str] = [f"seed {seed}"]
    for _ in range(draw.randint(3, 9)):
        match draw.choice(
            [
                *("a", "a", "b", "b", "xendit", "work", "work", "repeat", "sweep", "decide"),
                *("cancel", "goods"),
            ]
        ):
            case "a" | "b" as which:
                word = draw.choice(truth.WORDS)
                history.append(f"{which}:{word}")
                notify("midtrans", midtrans_document(word, order.pk, f"{which}-{order.pk}"))
            case "xendit":
                word = draw.choice(
                    ["paid", "paid", "authorized", "failed", "expired", "part_refund", "refund"]
                )
                history.append(f"x:{word}")
                notify("xendit", xendit_document(word, order.pk, f"py-{order.pk}"))
            case "work":
                if waiting := worker.waiting():
                    event = draw.choice(waiting)
                    history.append(f"work {event.event_type}")
                    worker.process(event)
            case "repeat":
                if worker.done:
                    worker.process(draw.choice(worker.done))
                    history.append("repeat")
            case "sweep":
                aged(order, timedelta(days=draw.choice([0, 3])))
                history.append(f"sweep expires {expire_unpaid_orders()}")
            case "decide":
                history.append(decide(draw, order, ayu, budi))
            case "cancel":
                history.append(buyer_cancels(order))
            case "goods":
                history.append(f"goods for {serve_out_of_stock()}")
    rest = worker.waiting()
    draw.shuffle(rest)
    for event in rest:
        worker.process(event)
    check(order, product, history)


def buyer_cancels(order: Order) -> str:
    """The buyer gives the order up, which must not touch money that moves."""
    try:
        cancelled = cancel_for_buyer(order_id=order.pk)
    except OrderNotCancellable as refusal:
        return f"cannot cancel: {refusal}"
    assert kept_of(order) == 0
    assert not Payment.objects.filter(order=order, status__in=("authorized", "challenged")).exists()
    return f"buyer: {cancelled.status}"


def decide(draw: random.Random, order: Order, ayu: Any, budi: Any) -> str:
    """Two people decide on a hold of the order, as they may."""
    holds = open_holds(order.pk)
    if not holds or draw.random() < 0.1:
        try:
            with transaction.atomic():
                decisions.cancel_order(order_id=order.pk, reason="x", actor=ayu.username)
        except (AlreadyRequested, CannotDecide) as error:
            return f"cannot cancel: {error}"
        return "cancel"
    hold = draw.choice(holds)
    decision = draw.choice(decisions.offered(hold))
    try:
        with transaction.atomic():
            if decision in FOUR_EYES:
                decisions.request_decision(
                    hold_id=hold.pk, decision=decision, reason="x", actor=ayu.username
                )
                decisions.accept_request(hold_id=hold.pk, actor=budi.username)
            elif decision == "cancel":
                decisions.decide_to_cancel(hold_id=hold.pk, reason="x", actor=ayu.username)
            else:
                decisions.dismiss(hold_id=hold.pk, reason="x", actor=ayu.username)
    except (AlreadyRequested, CannotDecide) as error:
        return f"cannot {decision} {hold}: {error}"
    return f"{decision} {hold}"


def play_many(seeds: range) -> None:
    people = [get_user_model().objects.create_user(name) for name in ("ayu", "budi")]
    for seed in seeds:
        with suppress(Undone), transaction.atomic():
            product = a_product(stocked=10, price_rupiah=truth.TOTAL // 2)
            play(seed, product, *people)
            raise Undone


def test_some_lives_of_orders_with_two_transactions_and_two_gateways() -> None:
    play_many(range(60))


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("part", range(4))
def test_many_lives_of_orders_with_two_transactions_and_two_gateways(part: int) -> None:
    play_many(range(1_000 + part * 500, 1_000 + (part + 1) * 500))
