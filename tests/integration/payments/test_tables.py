"""What the database itself refuses, whoever asks."""

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from orders.append_only import AppendOnlyError
from orders.models import Order
from payments.attempts import open_attempt
from payments.models import Payment, PaymentNotification, PaymentRefund
from tests.integration.payments.gateways import TOTAL, an_order, midtrans_posts, the_payment
from tests.unit.payments import midtrans_notifications as midtrans

pytestmark = pytest.mark.django_db


@pytest.fixture
def order() -> Order:
    """An order with a settled payment, of which a part was refunded."""
    order = an_order()
    reference = {"order_id": str(order.pk)}
    midtrans_posts(midtrans.card("settlement", **reference))
    midtrans_posts(midtrans.refunded(("r1", "50000.00"), **reference))
    return order


def refused(sql: str, *parameters: Any) -> None:
    with (
        pytest.raises(IntegrityError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql, parameters)


@pytest.mark.parametrize("table", ["payments_paymentnotification", "payments_paymentrefund"])
def test_what_was_told_cannot_be_deleted(table: str, order: Order) -> None:
    refused(f"DELETE FROM {table}")  # noqa: S608


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("payments_paymentrefund", "amount_rupiah = 1"),
        ("payments_paymentnotification", "amount = 1"),
        ("payments_paymentnotification", "payload = '{}'"),
        ("payments_paymentnotification", "outcome = 'ignored'"),
        ("payments_paymentnotification", "outcome = 'unmatched', payment_id = NULL"),
    ],
)
def test_what_was_told_and_decided_cannot_be_changed(table: str, change: str, order: Order) -> None:
    refused(f"UPDATE {table} SET {change}")  # noqa: S608


def test_the_models_refuse_too(order: Order) -> None:
    for row in (PaymentNotification.objects.first(), PaymentRefund.objects.get()):
        assert row is not None
        with pytest.raises(AppendOnlyError):
            row.save()
        with pytest.raises(AppendOnlyError):
            row.delete()


def test_an_unmatched_notification_is_decided_once(order: Order) -> None:
    payment = the_payment(order)
    told = PaymentNotification.objects.create(
        provider="midtrans",
        identity="unmatched-one",
        transaction_id="another",
        occurred_at=timezone.now(),
        payload={},
        outcome="unmatched",
    )
    refused("UPDATE payments_paymentnotification SET transaction_id = 'x' WHERE id = %s", told.pk)
    refused(
        "UPDATE payments_paymentnotification SET transaction_id = 'x', outcome = 'held', "
        "payment_id = %s WHERE id = %s",
        payment.pk,
        told.pk,
    )

    told.decide(payment=payment, outcome="ignored", reason="late")

    told.refresh_from_db()
    assert (told.outcome, told.reason, told.payment) == ("ignored", "late", payment)
    with pytest.raises(AppendOnlyError):
        told.decide(payment=payment, outcome="applied", reason="")


@pytest.mark.parametrize(
    "values",
    [
        {"refunded_rupiah": TOTAL + 1},
        {"refunded_rupiah": -1},
        {"amount_rupiah": -1},
        {"status": "unheard"},
        {"status": "captured", "paid_at": None},
    ],
)
def test_impossible_payments(values: dict[str, Any], order: Order) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Payment.objects.filter(order=order).update(**values)


def test_one_payment_for_each_transaction_of_a_gateway(order: Order) -> None:
    other = an_order("xendit")

    with pytest.raises(IntegrityError), transaction.atomic():
        Payment.objects.create(
            order=other,
            provider="midtrans",
            transaction_id=midtrans.TRANSACTION_ID,
            amount_rupiah=TOTAL,
        )
    Payment.objects.create(
        order=other,
        provider="xendit-other",
        transaction_id=midtrans.TRANSACTION_ID,
        amount_rupiah=TOTAL,
    )


def test_an_attempt_waits_for_its_gateway_once() -> None:
    order = an_order("midtrans")
    first = order.payments.get()
    assert (first.number, first.reference) == (1, f"{order.pk}-1")

    again = open_attempt(order, provider="midtrans")
    assert (again.number, again.reference) == (2, f"{order.pk}-2")
    with pytest.raises(IntegrityError, match="payment_attempt_once"), transaction.atomic():
        Payment.objects.create(
            order=order, provider="midtrans", amount_rupiah=TOTAL, reference=first.reference
        )
