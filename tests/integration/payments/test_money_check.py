"""The check of all money finds what does not agree, each kind of it, and nothing else."""

from collections.abc import Callable
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from orders.models import Order, Product, StockMovement
from payments.models import Hold, Payment
from payments.money_check import check_daily, check_money
from skincare.events import relay
from skincare.events.models import OutboxEvent
from tests.integration.payments.gateways import (
    TOTAL,
    an_order,
    consume_all,
    midtrans_posts,
    the_payment,
)
from tests.unit.payments import midtrans_notifications as midtrans

pytestmark = pytest.mark.django_db


def paid_order() -> Order:
    order = an_order()
    midtrans_posts(midtrans.card("settlement", order_id=str(order.pk)))
    return consume_all(order)


def found() -> list[str]:
    return [str(one) for one in check_money()]


def test_a_shop_where_all_is_right() -> None:
    an_order()
    paid_order()

    assert found() == []


def paid_without_money(order: Order) -> None:
    Payment.objects.filter(order=order).update(status="denied")


def money_without_its_order(order: Order) -> None:
    Order.objects.filter(pk=order.pk).update(status="expired")


def another_sum_refunded(order: Order) -> None:
    Order.objects.filter(pk=order.pk).update(refunded_rupiah=1)


def refund_that_is_not_recorded(order: Order) -> None:
    Payment.objects.filter(order=order).update(refunded_rupiah=TOTAL - 1, status="partly_refunded")


def refunded_without_a_refund(order: Order) -> None:
    Payment.objects.filter(order=order).update(status="refunded")


def hold_without_its_row(order: Order) -> None:
    Order.objects.filter(pk=order.pk).update(held_reason="somebody said so")


def row_without_its_hold(order: Order) -> None:
    Hold.objects.create(order=order, code="other", reason="lost")


def paid_twice_and_not_held(order: Order) -> None:
    Payment.objects.create(
        order=order,
        provider="midtrans",
        transaction_id="second",
        status="settled",
        amount_rupiah=TOTAL,
        paid_at=timezone.now(),
    )


def cancelled_and_not_held(order: Order) -> None:
    Order.objects.filter(pk=order.pk).update(cancelled_at=timezone.now())


def stock_that_moved_by_itself(order: Order) -> None:
    Product.objects.update(stock=7)


def stock_that_the_order_should_have_given_back(order: Order) -> None:
    StockMovement.objects.create(
        event_id="by-hand",
        product=order.lines.get().product,
        order=order,
        kind="unsell",
        stock_delta=2,
        reserved_delta=2,
    )
    Product.objects.update(stock=10, reserved=2)


@pytest.mark.parametrize(
    ("break_it", "what"),
    [
        (paid_without_money, "is paid, and has to be pending: 0 of 150000 rupiah are kept"),
        (money_without_its_order, "is expired, and has to be paid: 150000 of 150000"),
        (another_sum_refunded, "has 1 rupiah refunded, and not 0"),
        (refund_that_is_not_recorded, "has 149999 rupiah refunded, its refunds add up to 0"),
        (refunded_without_a_refund, "is refunded, and 0 rupiah went back"),
        (hold_without_its_row, "is held for 'somebody said so', and its open holds say []"),
        (row_without_its_hold, "is held for '', and its open holds say ['lost']"),
        (paid_twice_and_not_held, "was paid more than once, and payment"),
        (cancelled_and_not_held, "was cancelled, and keeps 150000 rupiah without a hold"),
        (stock_that_moved_by_itself, "has 7 pieces, 0 reserved; its movements add up to 8 and 0"),
        (stock_that_the_order_should_have_given_back, "holds 2 reserved and 0 sold of product"),
    ],
)
def test_each_disagreement_is_found(break_it: Callable[[Order], None], what: str) -> None:
    order = paid_order()
    break_it(order)
    out = StringIO()

    with pytest.raises(SystemExit) as ended:
        call_command("check_money", stdout=out)

    assert ended.value.code == 1
    assert what in out.getvalue()


def test_what_is_on_its_way_to_a_worker_is_no_disagreement_for_an_hour() -> None:
    order = an_order()
    midtrans_posts(midtrans.card("settlement", order_id=str(order.pk)))
    assert the_payment(order).status == "settled"

    assert found() == []

    OutboxEvent.objects.update(created_at=timezone.now() - timedelta(hours=2))
    assert found() == [
        f"{order.number}: is pending, and has to be paid: 150000 of 150000 rupiah are kept",
        *(line for line in found() if "of product" in line),
    ]


def test_the_relay_checks_four_times_a_day() -> None:
    hold_without_its_row(paid_order())
    (job,) = [job for job in relay._jobs if job.name == "check_money"]

    assert job.seconds == 6 * 3600
    assert check_daily() == 1
