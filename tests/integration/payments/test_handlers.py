"""What the payment events do to the order, in any order, and what the buyer is written."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.utils import timezone

from orders.models import Order, Product
from payments.models import Payment
from skincare.events.consumer import EventOutcome, process
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.sqs.outcome import Terminal
from tests.integration.orders.shop import numbers
from tests.integration.payments.gateways import (
    TOTAL,
    an_order,
    consume,
    consume_all,
    midtrans_posts,
    published,
    the_payment,
)
from tests.unit.payments import midtrans_notifications as midtrans

pytestmark = pytest.mark.django_db


def notify(order: Order, *documents: dict[str, Any]) -> None:
    for document in documents:
        changed = {**document, "order_id": str(order.pk)}
        changed.setdefault("transaction_id", str(order.pk))
        assert midtrans_posts(changed).status_code == 200


def own(documents: Sequence[dict[str, Any]], order: Order) -> list[dict[str, Any]]:
    """The documents, as of a transaction of this order's own."""
    return [{**document, "transaction_id": f"of-{order.pk}"} for document in documents]


def product_of(order: Order) -> Product:
    return order.lines.get().product


def bare(order: Order, event_type: str = "payment.processed", **changes: Any) -> dict[str, Any]:
    """The event as another producer, in another language, puts it on the queue."""
    return {
        "event_id": f"pos-{uuid4()}",
        "event_type": event_type,
        "order_id": str(order.pk),
        "payment_id": str(order.payments.get().pk),
        "user_id": "guest",
        "amount_rupiah": TOTAL,
        "created_at": "2026-11-11T00:00:00+07:00",
        "till": "7",
        **changes,
    }


def process_bare(document: dict[str, Any]) -> EventOutcome:
    return process(document, receive_count=1, worker="worker-1")


# -- One event -------------------------------------------------------------------------------------


def test_processed_pays_the_order_sells_its_stock_and_sends_a_receipt() -> None:
    order = an_order()
    notify(order, midtrans.bank_transfer("settlement"))

    assert consume_all(order).status == "paid"

    assert numbers(product_of(order)) == (8, 0)
    assert [message.to for message in mail.outbox] == [["sari@example.com"]] * 2


def test_a_redelivery_changes_nothing() -> None:
    order = an_order()
    notify(order, midtrans.bank_transfer("settlement"))
    [event] = published(order)
    consume(event)

    assert [consume(event) for _ in range(3)] == [EventOutcome.DUPLICATE] * 3

    assert numbers(product_of(order)) == (8, 0)
    assert len(mail.outbox) == 1


@pytest.mark.parametrize("word", ["expire", "cancel", "deny", "failure"])
def test_a_failed_attempt_leaves_the_order_waiting_with_its_stock_and_tells_the_buyer(
    word: str,
) -> None:
    order = an_order()
    notify(order, midtrans.bank_transfer(word))

    assert consume_all(order).status == "pending"

    assert numbers(product_of(order)) == (10, 2)
    _, failed = mail.outbox
    assert "Anda dapat mencoba lagi sampai" in str(failed.body)


def test_a_reversal_lets_the_order_wait_for_other_money() -> None:
    order = an_order()
    notify(order, midtrans.bank_transfer("settlement"))
    assert consume_all(order).status == "paid"
    notify(order, midtrans.bank_transfer("deny"))

    assert consume_all(order).status == "pending"

    assert numbers(product_of(order)) == (10, 2)
    assert not order.can_be_shipped


def test_a_partial_refund_is_recorded_and_its_own_amount_told() -> None:
    order = an_order()
    refunds = [("r1", "50000.00"), ("r2", "25000.00")]
    notify(order, midtrans.card("settlement"), midtrans.refunded(*refunds[:1]))
    notify(order, midtrans.refunded(*refunds))

    consume_all(order)

    assert (order.status, order.refunded_rupiah) == ("partly_refunded", 75000)
    assert numbers(product_of(order)) == (8, 0)
    bodies = [str(message.body) for message in mail.outbox[-2:]]
    assert "50.000" in bodies[0]
    assert "25.000" in bodies[1]


@pytest.mark.parametrize(("shipped", "stock"), [(False, 10), (True, 8)])
def test_a_full_refund_returns_the_stock_before_shipping(shipped: bool, stock: int) -> None:
    order = an_order()
    notify(order, midtrans.card("settlement"))
    consume_all(order)
    if shipped:
        order.shipped_at = timezone.now()
        order.save()
    notify(order, midtrans.refunded(("r1", "150000.00"), transaction_status="refund"))

    assert consume_all(order).status == "refunded"

    assert numbers(product_of(order)) == (stock, 0)


# -- Several events, in any order ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("documents", "status", "refunded", "stock"),
    [
        (
            [midtrans.bank_transfer("expire"), midtrans.bank_transfer("settlement")],
            "paid",
            0,
            8,
        ),
        (
            [midtrans.bank_transfer("settlement"), midtrans.bank_transfer("deny")],
            "pending",
            0,
            10,
        ),
        (
            [midtrans.card("settlement"), midtrans.refunded(("r1", "50000.00"))],
            "partly_refunded",
            50000,
            8,
        ),
        (
            [
                midtrans.card("settlement"),
                midtrans.refunded(("r1", "50000.00")),
                midtrans.refunded(
                    ("r1", "50000.00"), ("r2", "100000.00"), transaction_status="refund"
                ),
            ],
            "refunded",
            TOTAL,
            10,
        ),
    ],
    ids=["late money", "reversal", "partial refund", "full refund in parts"],
)
def test_the_order_ends_as_the_payment_says_whatever_comes_first(
    documents: list[dict[str, Any]], status: str, refunded: int, stock: int
) -> None:
    for arrival in permutations(range(len(documents))):
        order = an_order()
        notify(order, *own(documents, order))
        events = published(order)

        for index in arrival:
            assert consume(events[index]) is EventOutcome.DONE

        order.refresh_from_db()
        assert (order.status, order.refunded_rupiah) == (status, refunded)
        reserved = 2 if status == "pending" else 0
        assert numbers(product_of(order)) == (stock, reserved)
        assert not order.is_held


def test_a_failed_try_does_not_cancel_what_another_has_paid() -> None:
    order = an_order()
    notify(order, midtrans.card("deny", transaction_id="first", status_code="202"))
    notify(order, midtrans.card("capture", transaction_id="second"))
    failed, paid = published(order)
    consume(paid)
    mail.outbox.clear()

    consume(failed)

    order.refresh_from_db()
    assert order.status == "paid"
    assert mail.outbox == []


def test_a_failed_try_does_not_cancel_while_another_is_open() -> None:
    order = an_order()
    notify(order, midtrans.card("deny", transaction_id="first", status_code="202"))
    notify(order, midtrans.bank_transfer("pending", transaction_id="second"))

    assert consume_all(order).status == "pending"

    assert numbers(product_of(order)) == (10, 2)


def test_the_refund_of_a_surplus_payment_leaves_the_order_paid() -> None:
    order = an_order()
    notify(order, midtrans.card("settlement", transaction_id="first"))
    notify(order, midtrans.card("settlement", transaction_id="second"))
    surplus = midtrans.refunded(
        ("r1", "150000.00"), transaction_status="refund", transaction_id="second"
    )
    notify(order, surplus)

    consume_all(order)

    assert (order.status, order.refunded_rupiah) == ("paid", 0)
    assert numbers(product_of(order)) == (8, 0)
    assert "150.000" in str(mail.outbox[-1].body)


def test_the_receipt_is_not_sent_for_money_that_is_gone() -> None:
    order = an_order()
    notify(order, midtrans.bank_transfer("settlement"), midtrans.bank_transfer("deny"))
    processed, _ = published(order)

    consume(processed)

    assert mail.outbox == []


# -- Events of other producers ---------------------------------------------------------------------


def test_a_bare_event_takes_the_same_way() -> None:
    order = an_order()
    notify(order, midtrans.bank_transfer("settlement"))

    assert process_bare(bare(order)) is EventOutcome.DONE

    assert consume_all(order).status == "paid"
    assert numbers(product_of(order)) == (8, 0)


def test_a_producer_that_saw_the_money_first_is_believed() -> None:
    order = an_order()

    process_bare(bare(order))

    order.refresh_from_db()
    payment = the_payment(order)
    assert (order.status, payment.status) == ("paid", "settled")
    assert payment.paid_at is not None
    notify(order, midtrans.bank_transfer("settlement"))
    assert published(order) == []


def test_a_producer_that_saw_the_failure_first_is_believed() -> None:
    order = an_order()

    process_bare(bare(order, "payment.failed"))

    order.refresh_from_db()
    assert (order.status, the_payment(order).status) == ("pending", "failed")


@pytest.mark.parametrize(
    ("event_type", "changes", "error"),
    [
        ("payment.processed", {"amount_rupiah": TOTAL - 1}, "WrongAmount: 149999 instead of"),
        ("payment.failed", {"amount_rupiah": TOTAL + 1}, "WrongAmount: 150001 instead of"),
        ("payment.refunded", {"amount_rupiah": 1}, "WrongAmount: no refund of 1 rupiah"),
        ("payment.processed", {"payment_id": str(uuid4())}, "PaymentNotFound: there is no payment"),
        ("payment.processed", {"payment_id": "pay-1"}, "PaymentNotFound: pay-1 is not the id"),
        ("payment.processed", {"order_id": str(uuid4())}, "OrderNotFound: there is no order"),
    ],
)
def test_a_contradiction_goes_to_a_person(
    event_type: str, changes: dict[str, Any], error: str
) -> None:
    order = an_order()
    document = bare(order, event_type, **changes)

    with pytest.raises(Terminal, match=error):
        process_bare(document)

    row = ProcessedEvent.objects.get(event_id=document["event_id"])
    assert row.status == "failed"
    assert row.last_error.startswith(error)
    order.refresh_from_db()
    assert order.status == "pending"
    assert mail.outbox == []


def test_a_payment_of_another_order_goes_to_a_person() -> None:
    order, other = an_order(), an_order()

    with pytest.raises(Terminal, match="is not of order"):
        process_bare(bare(order, payment_id=str(the_payment(other).pk)))

    assert OutboxEvent.objects.filter(event_type__startswith="payment.").count() == 0


def test_a_denied_payment_is_not_paid_by_an_event() -> None:
    order = an_order()
    notify(order, midtrans.card("deny", status_code="202"))

    with pytest.raises(Terminal, match=r"ContradictsPayment: payment \S+ is denied, not settled"):
        process_bare(bare(order))

    assert Payment.objects.get(order=order).status == "denied"
