"""Orders and payments agree, whatever the gateways report and in whatever order it is processed.

What the gateways mean is in `gateway_truth`, which knows nothing of the shop. After each sequence:

- shippable means that exactly the total is kept;
- kept money has an order that is paid, partly refunded, or held;
- the ledger adds up to the stock, and to what the order holds;
- the check of all money finds nothing;
- after a documented history the shop keeps what the gateway's documents say.
"""

import random
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Sum

from orders.models import Order, Product
from payments import decisions
from payments.exceptions import CannotDecide
from payments.expiry import expire_unpaid_orders
from payments.hold_codes import FOUR_EYES
from payments.holds import open_holds
from payments.models import Payment
from payments.money_check import check_money
from payments.notifications import record
from payments.providers import PROVIDERS
from skincare.events.handlers import handler_for
from skincare.events.models import OutboxEvent
from skincare.events.schema import parse_event
from tests.integration.orders.shop import a_product, aged, place
from tests.integration.payments import gateway_truth as truth
from tests.unit.payments import midtrans_notifications as midtrans
from tests.unit.payments import xendit_callbacks as xendit

pytestmark = pytest.mark.django_db

IN = ("captured", "settled", "partly_refunded", "refunded")


def document(word: str, order: Order, transaction_id: str) -> dict[str, Any]:
    """The notification that Midtrans sends for this word of `gateway_truth`."""
    ids = {"order_id": str(order.pk), "transaction_id": transaction_id}
    part, rest = ("part", f"{truth.PART}.00"), ("rest", f"{truth.TOTAL - truth.PART}.00")
    match word:
        case "capture_challenge":
            return midtrans.card("capture", fraud_status="challenge", **ids)
        case "capture_accept":
            return midtrans.card("capture", **ids)
        case "partial_refund":
            return midtrans.refunded(part, **ids)
        case "refund":
            return midtrans.refunded(part, rest, transaction_status="refund", **ids)
        case "authorize" | "chargeback" | "settlement":
            return midtrans.card(word, **ids)
        case _:
            return midtrans.bank_transfer(word, **ids)


def notify(name: str, document: dict[str, Any]) -> None:
    report = PROVIDERS[name].parse(document)  # type: ignore[attr-defined]
    record(report)


class Worker:
    """Processes the order's events as the consumer does, but for claim and email."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.done: list[OutboxEvent] = []

    def waiting(self) -> list[OutboxEvent]:
        events = OutboxEvent.objects.filter(
            order_id=str(self.order.pk), event_type__startswith="payment."
        ).exclude(pk__in=[event.pk for event in self.done])
        return list(events.order_by("id"))

    def process(self, row: OutboxEvent) -> None:
        event = parse_event(row.payload)
        handler = handler_for(event.event_type)
        assert handler is not None
        with transaction.atomic():
            handler.effects(event)
        if row not in self.done:
            self.done.append(row)


def new_order(product: Product) -> Order:
    placed = place((product, 2), payment_method="midtrans")
    return Order.objects.get(pk=placed.order_id)


def check(order: Order, product: Product, history: object) -> None:
    """Hold the end of a history to what must always be true."""
    order.refresh_from_db()
    product.refresh_from_db()
    kept = sum(
        payment.amount_rupiah - payment.refunded_rupiah
        for payment in Payment.objects.filter(order=order, status__in=IN)
    )
    if order.can_be_shipped:
        assert kept == order.total_rupiah, history
    if kept > 0:
        assert order.status in ("paid", "partly_refunded") or order.is_held, history
    if order.status == "paid":
        assert kept >= order.total_rupiah, history
    moved = product.movements.aggregate(stock=Sum("stock_delta"), reserved=Sum("reserved_delta"))
    assert (moved["stock"], moved["reserved"]) == (product.stock, product.reserved), history
    found = [str(one) for one in check_money()]
    assert found == [], (history, found)


class Undone(Exception):
    """Takes back what a branch did."""


def branches(
    order: Order, product: Product, words: list[str], longest: int, counted: list[int]
) -> None:
    """Send each word that may come next, look, and go on from there; take it all back after."""
    for word in truth.WORDS:
        try:
            with transaction.atomic():
                history = [*words, word]
                notify("midtrans", document(word, order, "t-1"))
                look_after(order, product, history)
                counted[0] += 1
                if len(history) < longest:
                    branches(order, product, history, longest, counted)
                raise Undone
        except Undone:
            pass


def look_after(order: Order, product: Product, history: list[str]) -> None:
    """Let a worker process all that was published so far, look, and take that back."""
    try:
        with transaction.atomic():
            worker = Worker(order)
            # In an order that differs from history to history, and is the same each time.
            events = worker.waiting()
            random.Random("".join(history)).shuffle(events)  # noqa: S311
            for event in events:
                worker.process(event)
            check(order, product, history)
            if truth.is_documented(history):
                kept = sum(
                    payment.amount_rupiah - payment.refunded_rupiah
                    for payment in Payment.objects.filter(order=order, status__in=IN)
                )
                assert kept == truth.kept_after(history), history
                if truth.kept_after(history) == truth.TOTAL:
                    assert order.can_be_shipped, history
                if history[-1] in truth.IN_DOUBT or kept:
                    aged(order, timedelta(days=3))
                    assert expire_unpaid_orders() == 0, history
            raise Undone
    except Undone:
        pass


@pytest.fixture
def order() -> tuple[Order, Product]:
    product = a_product(stocked=10, price_rupiah=truth.TOTAL // 2)
    return new_order(product), product


def test_every_history_of_two_words_of_one_transaction(order: tuple[Order, Product]) -> None:
    counted = [0]
    branches(*order, [], 2, counted)
    assert counted == [11 + 11**2]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", truth.WORDS)
def test_every_history_of_four_words_of_one_transaction(
    first: str, order: tuple[Order, Product]
) -> None:
    counted = [1]
    notify("midtrans", document(first, order[0], "t-1"))
    branches(*order, [first], 4, counted)
    assert counted == [1 + 11 + 11**2 + 11**3]


# -- Two transactions, two gateways, workers, sweeps and people ------------------------------------


def xendit_document(word: str, order: Order, payment_id: str) -> dict[str, Any]:
    reference = f"{order.pk}-1"
    if word == "refund":
        return xendit.refund(payment_id=payment_id, amount=truth.TOTAL, refund_id=f"r-{payment_id}")
    event, status = {
        "paid": ("payment.capture", "SUCCEEDED"),
        "authorized": ("payment.authorization", "AUTHORIZED"),
        "failed": ("payment.failure", "FAILED"),
        "expired": ("payment.expiry", "EXPIRED"),
    }[word]
    return xendit.payment_v3(event, status, payment_id=payment_id, reference_id=reference)


def play(seed: int, product: Product, ayu: Any, budi: Any) -> None:
    """One order's life, drawn by `seed`: reports, workers, sweeps and decisions in any order."""
    draw = random.Random(seed)  # noqa: S311
    order = new_order(product)
    worker = Worker(order)
    history: list[str] = [f"seed {seed}"]
    for _ in range(draw.randint(3, 9)):
        match draw.choice(
            ["a", "a", "b", "b", "xendit", "work", "work", "repeat", "sweep", "decide"]
        ):
            case "a" | "b" as which:
                word = draw.choice(truth.WORDS)
                history.append(f"{which}:{word}")
                notify("midtrans", document(word, order, f"{which}-{order.pk}"))
            case "xendit":
                word = draw.choice(["paid", "paid", "authorized", "failed", "expired", "refund"])
                history.append(f"x:{word}")
                notify("xendit", xendit_document(word, order, f"py-{order.pk}"))
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
    rest = worker.waiting()
    draw.shuffle(rest)
    for event in rest:
        worker.process(event)
    check(order, product, history)


def decide(draw: random.Random, order: Order, ayu: Any, budi: Any) -> str:
    """Two people decide on a hold of the order, as they may."""
    holds = open_holds(order.pk)
    if not holds or draw.random() < 0.1:
        try:
            with transaction.atomic():
                decisions.cancel_order(order_id=order.pk, reason="x", user=ayu)
        except CannotDecide as error:
            return f"cannot cancel: {error}"
        return "cancel"
    hold = draw.choice(holds)
    decision = draw.choice(decisions.offered(hold))
    try:
        with transaction.atomic():
            if decision in FOUR_EYES:
                decisions.request_decision(hold_id=hold.pk, decision=decision, reason="x", user=ayu)
                decisions.accept_request(hold_id=hold.pk, user=budi)
            elif decision == "cancel":
                decisions.decide_to_cancel(hold_id=hold.pk, reason="x", user=ayu)
            else:
                decisions.dismiss(hold_id=hold.pk, reason="x", user=ayu)
    except CannotDecide as error:
        return f"cannot {decision} {hold}: {error}"
    return f"{decision} {hold}"


def play_many(seeds: range) -> None:
    people = [get_user_model().objects.create_user(name) for name in ("ayu", "budi")]
    for seed in seeds:
        try:
            with transaction.atomic():
                product = a_product(stocked=10, price_rupiah=truth.TOTAL // 2)
                play(seed, product, *people)
                raise Undone
        except Undone:
            pass


def test_some_lives_of_orders_with_two_transactions_and_two_gateways() -> None:
    play_many(range(60))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(4))
def test_many_lives_of_orders_with_two_transactions_and_two_gateways(part: int) -> None:
    play_many(range(1_000 + part * 500, 1_000 + (part + 1) * 500))
