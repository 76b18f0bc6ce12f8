"""Webhooks that come at the same moment as each other, or as the checkout that they belong to."""

from functools import partial
from threading import Event
from time import monotonic
from typing import Any

import pytest
from django.db import transaction

from orders.locks import lock_order
from orders.models import Order
from payments.models import PaymentNotification
from payments.notifications import retry_unmatched
from skincare.local.deadline import busyness
from tests.integration.orders.together import together
from tests.integration.payments.gateways import (
    TOTAL,
    an_order,
    midtrans_posts,
    the_payment,
    told,
    xendit_posts,
)
from tests.log_lines import captured
from tests.unit.payments import midtrans_notifications as midtrans
from tests.unit.payments import xendit_callbacks as xendit

pytestmark = pytest.mark.django_db(transaction=True)

PARALLEL = 10


def statuses(answers: list[Any]) -> list[Any]:
    return [getattr(answer, "status_code", answer) for answer in answers]


def test_parallel_repeats_make_one_event() -> None:
    order = an_order()
    document = midtrans.bank_transfer(order_id=str(order.pk))

    answers = together([lambda: midtrans_posts(document)] * PARALLEL)

    assert statuses(answers) == [200] * PARALLEL
    assert PaymentNotification.objects.count() == 1
    assert the_payment(order).status == "settled"
    assert told(order) == [("payment.processed", TOTAL)]


def test_parallel_repeats_of_an_unmatched_notification_make_one_event() -> None:
    document = midtrans.bank_transfer(order_id="5c9f2f0e-2d61-4c9b-8f0a-2b7a52b6a111")
    assert statuses(together([lambda: midtrans_posts(document)] * PARALLEL)) == [200] * PARALLEL
    placed = an_order()
    order = Order.objects.create(
        pk="5c9f2f0e-2d61-4c9b-8f0a-2b7a52b6a111",
        number="SKN-20261111-LATE22",
        email=placed.email,
        payment_method="midtrans",
        total_rupiah=TOTAL,
    )

    answers = together([lambda: midtrans_posts(document)] * PARALLEL)

    assert statuses(answers) == [200] * PARALLEL
    assert PaymentNotification.objects.count() == 1
    assert told(order) == [("payment.processed", TOTAL)]


def test_different_notifications_of_one_order_in_parallel() -> None:
    order = an_order()
    words = ["pending", "settlement", "expire", "cancel"] * 2
    documents = [midtrans.bank_transfer(word, order_id=str(order.pk)) for word in words]

    answers = together([partial(midtrans_posts, document) for document in documents])

    assert statuses(answers) == [200] * len(words)
    assert the_payment(order).status == "settled"
    assert told(order).count(("payment.processed", TOTAL)) == 1


def test_two_transactions_paid_at_once_pay_the_order_once() -> None:
    order = an_order("xendit")
    reference = str(order.pk)
    documents = [
        xendit.invoice(external_id=reference, invoice_id=f"invoice-{number}", payment_id=None)
        for number in range(4)
    ]

    answers = together([partial(xendit_posts, document) for document in documents])

    assert statuses(answers) == [200] * 4
    assert list(order.payments.values_list("status", flat=True)) == ["settled"] * 4
    assert order.payments.exclude(held_reason="").count() == 3
    assert told(order) == [("payment.processed", TOTAL)]


def test_a_webhook_while_checkouts_transaction_is_open_is_applied_by_the_sweep() -> None:
    with transaction.atomic():
        order = an_order()
        document = midtrans.bank_transfer(order_id=str(order.pk))
        [during] = together([lambda: midtrans_posts(document)])

    assert retry_unmatched() == 1

    assert statuses([during]) == [200]
    assert PaymentNotification.objects.get().outcome == "applied"
    assert told(order) == [("payment.processed", TOTAL)]


def test_a_repeat_does_not_wait_for_a_locked_order() -> None:
    order = an_order()
    document = midtrans.bank_transfer(order_id=str(order.pk))
    midtrans_posts(document)

    with transaction.atomic():
        lock_order(order.pk)
        [during] = together([lambda: midtrans_posts(document)])

    assert statuses([during]) == [200]


def test_a_webhook_does_not_wait_long_for_a_locked_order() -> None:
    order = an_order()
    document = midtrans.bank_transfer(order_id=str(order.pk))
    locked, answered = Event(), Event()

    def work_on_the_order() -> Any:
        with transaction.atomic():
            lock_order(order.pk)
            locked.set()
            assert answered.wait(timeout=30)

    def webhook() -> Any:
        assert locked.wait(timeout=30)
        started = monotonic()
        try:
            answer = midtrans_posts(document)
            assert int(answer["Retry-After"]) > 0
            return answer.status_code, monotonic() - started
        finally:
            answered.set()

    with captured() as lines:
        _, answer = together([work_on_the_order, webhook])

    assert isinstance(answer, tuple), answer
    status, seconds = answer
    assert status == 503
    assert 2.5 < seconds < 5 * busyness()
    # Whoever knows an order can bring it about, so it is no error of ours and nothing for Sentry.
    assert "notification_put_off" in [line["event"] for line in lines.all()]
    assert {line["level"] for line in lines.all()} <= {"info", "warning"}
    assert PaymentNotification.objects.count() == 0
    assert midtrans_posts(document).status_code == 200
