"""What notifications do to payment and order, in all the orders in which they arrive."""

from itertools import permutations
from typing import Any

import pytest

from orders.models import Order
from payments.models import Payment, PaymentNotification, PaymentRefund
from tests.integration.payments.gateways import (
    TOTAL,
    an_order,
    midtrans_posts,
    the_payment,
    told,
    xendit_posts,
)
from tests.unit.payments import midtrans_notifications as midtrans
from tests.unit.payments import xendit_callbacks as xendit

pytestmark = pytest.mark.django_db


def outcomes() -> list[str]:
    return list(PaymentNotification.objects.order_by("id").values_list("outcome", flat=True))


def notify(order: Order, *documents: dict[str, Any]) -> None:
    for document in documents:
        assert midtrans_posts({**document, "order_id": str(order.pk)}).status_code == 200


# -- Disorder and repeats --------------------------------------------------------------------------


def test_settlement_before_pending() -> None:
    order = an_order()

    notify(order, midtrans.bank_transfer("settlement"), midtrans.bank_transfer("pending"))

    assert the_payment(order).status == "settled"
    assert outcomes() == ["applied", "ignored"]
    assert told(order) == [("payment.processed", TOTAL)]


def test_settlement_then_expire() -> None:
    order = an_order()

    notify(order, midtrans.bank_transfer("settlement"), midtrans.bank_transfer("expire"))

    assert the_payment(order).status == "settled"
    assert told(order) == [("payment.processed", TOTAL)]


def test_expire_then_settlement_is_money_that_is_not_dropped() -> None:
    order = an_order()

    notify(order, midtrans.bank_transfer("expire"), midtrans.bank_transfer("settlement"))

    assert the_payment(order).status == "settled"
    assert told(order) == [("payment.failed", TOTAL), ("payment.processed", TOTAL)]


def test_challenge_then_accept() -> None:
    order = an_order()

    notify(order, midtrans.card("capture", fraud_status="challenge"))
    assert the_payment(order).status == "challenged"
    assert told(order) == []

    notify(order, midtrans.card("capture", fraud_status="accept"))
    assert the_payment(order).status == "captured"
    assert told(order) == [("payment.processed", TOTAL)]


def test_capture_then_settlement_is_one_payment() -> None:
    order = an_order()

    notify(order, midtrans.card("capture"), midtrans.card("settlement"))

    assert the_payment(order).status == "settled"
    assert outcomes() == ["applied", "applied"]
    assert told(order) == [("payment.processed", TOTAL)]


def test_settlement_then_deny_is_a_reversal() -> None:
    order = an_order()

    notify(order, midtrans.bank_transfer("settlement"), midtrans.bank_transfer("deny"))

    payment = the_payment(order)
    assert (payment.status, payment.paid_at is not None) == ("denied", True)
    assert told(order) == [("payment.processed", TOTAL), ("payment.failed", TOTAL)]


def test_capture_then_cancel_takes_the_money_back() -> None:
    order = an_order()

    notify(order, midtrans.card("capture"), midtrans.card("cancel"))

    assert the_payment(order).status == "cancelled"
    assert told(order) == [("payment.processed", TOTAL), ("payment.failed", TOTAL)]


@pytest.mark.parametrize("word", ["expire", "cancel", "deny", "failure"])
def test_what_fails_is_told_once(word: str) -> None:
    order = an_order()

    notify(order, midtrans.bank_transfer("pending"), midtrans.bank_transfer(word))
    notify(order, midtrans.bank_transfer(word))

    assert told(order) == [("payment.failed", TOTAL)]


@pytest.mark.parametrize("later", ["cancel", "deny"])
def test_a_second_failure_is_not_told_again(later: str) -> None:
    order = an_order()

    notify(order, midtrans.bank_transfer("expire"), midtrans.bank_transfer(later))

    assert the_payment(order).status in ("cancelled", "denied")
    assert told(order) == [("payment.failed", TOTAL)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (midtrans.card("deny", status_code="202"), midtrans.card("settlement")),
        (midtrans.card("deny", status_code="202"), midtrans.refunded(("r1", "50000.00"))),
        (midtrans.card("settlement"), midtrans.card("cancel")),
        (midtrans.refunded(("r1", "50000.00")), midtrans.card("deny", status_code="202")),
    ],
)
def test_what_no_history_has_is_held(first: dict[str, Any], second: dict[str, Any]) -> None:
    order = an_order()
    notify(order, first)
    before, events = the_payment(order), told(order)

    notify(order, second)

    after = the_payment(order)
    assert (after.status, after.refunded_rupiah) == (before.status, before.refunded_rupiah)
    assert after.is_held
    assert told(order) == events


@pytest.mark.parametrize(
    ("documents", "status"),
    [
        ([midtrans.bank_transfer(word) for word in ("pending", "settlement")], "settled"),
        (
            [
                midtrans.card("capture", fraud_status="challenge"),
                midtrans.card("capture"),
                midtrans.card("settlement"),
            ],
            "settled",
        ),
        (
            [
                midtrans.card("settlement"),
                midtrans.refunded(("r1", "50000.00")),
                midtrans.refunded(("r1", "50000.00"), ("r2", "25000.00")),
            ],
            "partly_refunded",
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
        ),
    ],
)
def test_any_order_of_arrival_ends_alike(documents: list[dict[str, Any]], status: str) -> None:
    ends = set()
    for arrival in permutations([*documents, documents[-1]]):
        order = an_order()
        notify(order, *({**document, "transaction_id": str(order.pk)} for document in arrival))
        payment = the_payment(order)
        ends.add(
            (payment.status, payment.refunded_rupiah, payment.is_held, tuple(sorted(told(order))))
        )

    [(end, _, is_held, _)] = ends
    assert (end, is_held) == (status, False)


# -- Money -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"gross_amount": "150071.00"}, "amount 150071 rupiah instead of 150000"),
        ({"gross_amount": "149999.00"}, "amount 149999 rupiah instead of 150000"),
        ({"gross_amount": "150000.50"}, "amount 150000.50 is not whole rupiah"),
        ({"currency": "USD"}, "currency USD instead of IDR"),
        ({"status_code": "201"}, "settlement with status_code 201"),
    ],
)
def test_wrong_money_is_held_for_a_person_and_never_paid(
    change: dict[str, Any], reason: str
) -> None:
    order = an_order()

    notify(order, midtrans.bank_transfer("settlement", **change))

    payment = the_payment(order)
    assert (payment.status, payment.paid_at, payment.is_held) == ("pending", None, True)
    order.refresh_from_db()
    assert order.is_held
    notification = PaymentNotification.objects.get()
    assert notification.outcome == "held"
    assert notification.reason == reason
    assert told(order) == []


def test_wrong_money_of_xendit_is_held_too() -> None:
    order = an_order("xendit")

    response = xendit_posts(xendit.invoice(external_id=str(order.pk), amount=150000.5))

    assert response.status_code == 200
    payment = the_payment(order)
    assert (payment.status, payment.is_held) == ("pending", True)
    assert told(order) == []


def test_a_failure_has_no_money_to_compare() -> None:
    order = an_order()

    notify(order, midtrans.bank_transfer("expire", gross_amount="150071.00"))

    payment = the_payment(order)
    assert (payment.status, payment.is_held) == ("expired", False)


@pytest.mark.parametrize("change", [{"gross_amount": "150071.00"}, {"currency": "USD"}])
def test_a_reversal_of_other_money_is_held(change: dict[str, Any]) -> None:
    order = an_order()

    notify(order, midtrans.bank_transfer("settlement"), midtrans.bank_transfer("deny", **change))

    payment = the_payment(order)
    assert (payment.status, payment.is_held) == ("settled", True)
    assert told(order) == [("payment.processed", TOTAL)]


@pytest.mark.parametrize("change", [{"gross_amount": "150071.00"}, {"currency": "USD"}])
def test_a_refund_of_other_money_is_held(change: dict[str, Any]) -> None:
    order = an_order()

    notify(order, midtrans.card("settlement"), midtrans.refunded(("r1", "50000.00"), **change))

    payment = the_payment(order)
    assert (payment.status, payment.refunded_rupiah, payment.is_held) == ("settled", 0, True)
    assert told(order) == [("payment.processed", TOTAL)]


def test_a_transaction_that_names_another_order_is_held() -> None:
    order, other = an_order(), an_order()
    notify(order, midtrans.bank_transfer("pending"))

    notify(other, midtrans.bank_transfer("settlement"))

    assert (the_payment(order).status, the_payment(order).is_held) == ("pending", True)
    assert the_payment(other).status == "pending"
    assert told(order) == told(other) == []


def test_a_second_transaction_for_a_paid_order_is_held() -> None:
    order = an_order()
    notify(order, midtrans.bank_transfer("settlement"))

    notify(order, midtrans.bank_transfer("settlement", transaction_id="the-second"))

    second = Payment.objects.get(transaction_id="the-second")
    assert (second.status, second.is_held) == ("settled", True)
    order.refresh_from_db()
    assert f"payment {second.pk}: paid twice" in order.held_reason
    assert told(order) == [("payment.processed", TOTAL)]


def test_the_buyer_tries_again_after_a_denial() -> None:
    order = an_order()
    notify(order, midtrans.card("deny", transaction_id="the-first", status_code="202"))

    notify(order, midtrans.card("capture", transaction_id="the-second"))

    assert told(order) == [("payment.failed", TOTAL), ("payment.processed", TOTAL)]
    order.refresh_from_db()
    assert not order.is_held


def test_the_settlement_of_the_first_of_two_captures_is_not_held() -> None:
    order = an_order()
    notify(order, midtrans.card("capture", transaction_id="first"))
    notify(order, midtrans.card("capture", transaction_id="second"))

    notify(order, midtrans.card("settlement", transaction_id="first"))

    held = dict(Payment.objects.values_list("transaction_id", "held_reason"))
    assert held["first"] == ""
    assert held["second"].startswith("paid twice")
    assert told(order) == [("payment.processed", TOTAL)]


# -- Refunds ---------------------------------------------------------------------------------------


def test_partial_refunds_add_up() -> None:
    order = an_order()
    first, second = ("r1", "50000.00"), ("r2", "100000.00")
    notify(order, midtrans.card("settlement"), midtrans.refunded(first))
    payment = the_payment(order)
    assert (payment.status, payment.refunded_rupiah) == ("partly_refunded", 50000)

    notify(order, midtrans.refunded(first, second, transaction_status="refund"))

    payment = the_payment(order)
    assert (payment.status, payment.refunded_rupiah) == ("refunded", 150000)
    assert told(order) == [
        ("payment.processed", TOTAL),
        ("payment.refunded", 50000),
        ("payment.refunded", 100000),
    ]


def test_refunds_never_pass_the_amount() -> None:
    order = an_order()
    notify(order, midtrans.card("settlement"), midtrans.refunded(("r1", "100000.00")))

    notify(order, midtrans.refunded(("r1", "100000.00"), ("r2", "50001.00")))

    payment = the_payment(order)
    assert (payment.status, payment.refunded_rupiah) == ("partly_refunded", 100000)
    assert payment.held_reason == "refunds add up to 150001 of 150000 rupiah paid"
    assert PaymentRefund.objects.count() == 1
    assert told(order)[1:] == [("payment.refunded", 100000)]


def test_a_refund_before_its_settlement_implies_it() -> None:
    order = an_order()

    notify(order, midtrans.refunded(("r1", "50000.00")), midtrans.card("settlement"))

    assert the_payment(order).status == "partly_refunded"
    assert told(order) == [("payment.processed", TOTAL), ("payment.refunded", 50000)]


def test_a_chargeback_is_money_gone_and_a_person_looks() -> None:
    order = an_order()

    notify(order, midtrans.card("settlement"), midtrans.card("chargeback"))

    payment = the_payment(order)
    assert (payment.status, payment.refunded_rupiah) == ("refunded", TOTAL)
    assert payment.held_reason == "150000 rupiah charged back (chargeback)"
    order.refresh_from_db()
    assert order.is_held
    assert told(order) == [("payment.processed", TOTAL), ("payment.refunded", TOTAL)]


def test_a_partial_refund_without_an_amount_is_held() -> None:
    order = an_order()

    notify(order, midtrans.card("settlement"), midtrans.card("partial_refund"))

    payment = the_payment(order)
    assert (payment.status, payment.refunded_rupiah, payment.is_held) == ("settled", 0, True)


def test_xendit_refunds_find_their_payment_by_its_id() -> None:
    order = an_order("xendit")
    xendit_posts(xendit.payment_v3(reference_id=str(order.pk)))

    for refund_id, amount in (("rfd-1", 50000), ("rfd-2", 100000), ("rfd-1", 50000)):
        response = xendit_posts(xendit.refund(refund_id=refund_id, amount=amount))
        assert response.status_code == 200

    payment = the_payment(order)
    assert (payment.status, payment.refunded_rupiah) == ("refunded", TOTAL)
    assert told(order)[1:] == [("payment.refunded", 50000), ("payment.refunded", 100000)]


def test_a_xendit_refund_before_its_payment_comes_again() -> None:
    order = an_order("xendit")
    assert xendit_posts(xendit.refund()).status_code == 200
    xendit_posts(xendit.payment_v3(reference_id=str(order.pk)))

    assert xendit_posts(xendit.refund()).status_code == 200

    assert the_payment(order).refunded_rupiah == 50000


# -- Several ids and gateways ----------------------------------------------------------------------


def test_paid_and_settled_of_one_invoice_are_one_payment() -> None:
    order = an_order("xendit")

    for status in ("PAID", "SETTLED"):
        xendit_posts(xendit.invoice(status, external_id=str(order.pk)))

    assert the_payment(order).status == "settled"
    assert outcomes() == ["applied", "repeated"]
    assert told(order) == [("payment.processed", TOTAL)]


def test_an_expired_payment_request_that_was_paid_after_all() -> None:
    order = an_order("xendit")
    reference = str(order.pk)

    xendit_posts(
        xendit.payment_v3(
            "payment_request.expiry", "EXPIRED", payment_id="", reference_id=reference
        )
    )
    xendit_posts(xendit.payment_v3(reference_id=reference))

    assert sorted(order.payments.values_list("status", flat=True)) == ["expired", "settled"]
    assert told(order) == [("payment.failed", TOTAL), ("payment.processed", TOTAL)]


def test_a_payment_request_that_was_paid_twice_is_held() -> None:
    order = an_order("xendit")
    reference = str(order.pk)

    for payment_id in ("py-1", "py-2"):
        xendit_posts(xendit.payment_v3(payment_id=payment_id, reference_id=reference))

    assert order.payments.filter(status="settled").count() == 2
    assert order.payments.exclude(held_reason="").get().transaction_id == "py-2"
    assert told(order) == [("payment.processed", TOTAL)]


@pytest.mark.parametrize("invoice_first", [True, False])
def test_an_invoice_and_its_payment_are_one_transaction(invoice_first: bool) -> None:
    """Xendit tells of both where both webhooks are switched on in its dashboard."""
    order = an_order("xendit")
    reference = str(order.pk)
    documents = [
        xendit.invoice(external_id=reference, payment_id="py-1"),
        xendit.payment_v3(payment_id="py-1", reference_id=reference),
    ]

    for document in documents if invoice_first else reversed(documents):
        assert xendit_posts(document).status_code == 200
    xendit_posts(xendit.refund(payment_id="py-1", amount=50000))

    payment = the_payment(order)
    assert (payment.status, payment.refunded_rupiah) == ("partly_refunded", 50000)
    assert not payment.is_held
    assert told(order) == [("payment.processed", TOTAL), ("payment.refunded", 50000)]


def test_the_refund_of_an_invoice_finds_it() -> None:
    order = an_order("xendit")
    xendit_posts(xendit.invoice(external_id=str(order.pk), invoice_id="inv-1", payment_id=None))

    response = xendit_posts(xendit.refund(payment_id=None, invoice_id="inv-1"))

    assert response.status_code == 200
    assert the_payment(order).refunded_rupiah == 50000


def test_another_gateway_than_the_chosen_one_gets_its_own_payment() -> None:
    order = an_order("midtrans")

    xendit_posts(xendit.invoice(external_id=str(order.pk)))

    statuses = dict(Payment.objects.filter(order=order).values_list("provider", "status"))
    assert statuses == {"midtrans": "pending", "xendit": "settled"}
    assert told(order) == [("payment.processed", TOTAL)]


# -- Unmatched -------------------------------------------------------------------------------------


def test_an_unmatched_notification_is_applied_when_it_comes_again() -> None:
    order = an_order()
    document = midtrans.bank_transfer(order_id=str(order.pk))
    # Given: it came before the order did.
    PaymentNotification.objects.create(
        provider="midtrans",
        identity=f"{midtrans.TRANSACTION_ID}:settlement:200:accept",
        transaction_id=midtrans.TRANSACTION_ID,
        order_reference=str(order.pk),
        status="settled",
        amount=150000,
        currency="IDR",
        occurred_at=order.created_at,
        payload={},
        outcome="unmatched",
    )

    assert [midtrans_posts(document).status_code for _ in range(2)] == [200, 200]

    notification = PaymentNotification.objects.get()
    assert (notification.outcome, notification.payment) == ("applied", the_payment(order))
    assert told(order) == [("payment.processed", TOTAL)]
