"""Orders and payments agree, whatever the gateways report and in whatever order it is processed.

What the gateways mean is in `gateway_truth`, which knows nothing of the shop. After each sequence:

- shippable means that exactly the total is kept;
- kept money has an order that is paid, partly refunded, or held;
- the ledger adds up to the stock, and to what the order holds;
- the check of all money finds nothing;
- after a documented history the shop keeps what the gateway's documents say.
"""

import random
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Sum

from orders.models import Order, Product
from payments import decisions
from payments.cancelling import cancel_for_buyer
from payments.exceptions import AlreadyRequested, CannotDecide, OrderNotCancellable
from payments.expiry import expire_unpaid_orders
from payments.hold_codes import FOUR_EYES
from payments.holds import open_holds
from payments.models import Hold, Payment
from payments.money_check import check_money
from payments.notifications import record
from payments.providers import PROVIDERS
from payments.restocking import serve_out_of_stock
from skincare.events.handlers import handler_for
from skincare.events.models import OutboxEvent
from skincare.events.schema import parse_event
from tests.integration.orders.shop import a_product, aged, place
from tests.integration.payments import gateway_truth as truth
from tests.integration.payments.gateway_documents import midtrans_document, xendit_document

pytestmark = pytest.mark.django_db

IN = ("captured", "settled", "partly_refunded", "refunded")


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


def kept_of(order: Order) -> int:
    """Rupiah that the shop keeps of the order's payments."""
    paid = Payment.objects.filter(order=order, status__in=IN)
    return sum(payment.amount_rupiah - payment.refunded_rupiah for payment in paid)


def check(order: Order, product: Product, history: object) -> None:
    """Hold the end of a history to what must always be true."""
    order.refresh_from_db()
    product.refresh_from_db()
    kept = kept_of(order)
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


# -- Two transactions, two gateways, workers, sweeps and people ------------------------------------


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
