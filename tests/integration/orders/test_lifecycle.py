"""What events do to an order and its stock."""

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from orders import lifecycle
from orders.exceptions import TransitionRefused
from orders.locks import lock_order
from orders.models import Order, OrderTransition, Product
from orders.status import OrderStatus
from tests.integration.orders.shop import (
    a_product,
    an_order,
    cancelled,
    expired,
    moved,
    movements,
    numbers,
    paid,
    place,
    refunded,
    shipped,
    waiting,
)

pytestmark = pytest.mark.django_db


def transitions(order: Order) -> list[tuple[str, str]]:
    rows = OrderTransition.objects.filter(order=order).order_by("id")
    return list(rows.values_list("from_status", "to_status"))


@pytest.fixture
def serum() -> Product:
    return a_product(stocked=10, price_rupiah=50_000)


def test_a_paid_order_sells_what_it_reserved(serum: Product) -> None:
    order = paid(an_order((serum, 2)), "event-1")

    assert (order.status, order.is_held) == ("paid", False)
    assert order.paid_at is not None
    assert numbers(serum) == (8, 0)
    assert movements(order, serum) == [("reserve", 0, 2), ("sell", -2, -2)]
    assert transitions(order) == [("pending", "paid")]


def test_a_paid_order_refreshes_the_search_of_its_products() -> None:
    last, other = a_product(stocked=1), a_product(stocked=1)
    before, untouched = last.search_refreshed_at, other.search_refreshed_at
    assert Product.objects.get(pk=last.pk).search_in_stock

    paid(an_order((last, 1)))

    last.refresh_from_db()
    other.refresh_from_db()
    assert before is not None
    assert last.search_refreshed_at is not None
    assert last.search_refreshed_at > before
    assert last.search_in_stock is False
    assert other.search_refreshed_at == untouched


@pytest.mark.parametrize("status", ["paid", "partly_refunded", "refunded"])
def test_an_order_that_is_where_it_has_to_be_is_left_as_it_is(serum: Product, status: str) -> None:
    order = paid(an_order((serum, 2)))
    back = {"paid": 0, "partly_refunded": 30_000, "refunded": 100_000}[status]
    if back:
        order = refunded(order, back)
    before, history = numbers(serum), transitions(order)

    order = moved(order, OrderStatus(status), refunded_rupiah=back, event_id="event-2")

    assert (order.status, transitions(order)) == (status, history)
    assert numbers(serum) == before


@pytest.mark.parametrize("lapse", [cancelled, expired])
def test_a_late_settlement_takes_the_stock_again(serum: Product, lapse: object) -> None:
    order = lapse(an_order((serum, 2)))  # type: ignore[operator]
    assert numbers(serum) == (10, 0)

    order = paid(order)

    assert (order.status, order.is_held) == ("paid", False)
    assert numbers(serum) == (8, 0)
    assert movements(order, serum) == [("reserve", 0, 2), ("release", 0, -2), ("retake", -2, 0)]


def test_a_late_settlement_without_stock_says_what_is_lacking(serum: Product) -> None:
    toner = a_product(stocked=5)
    order = expired(an_order((serum, 2), (toner, 1)))
    place((serum, 9))

    with transaction.atomic():
        order = lock_order(order.pk)
        short = lifecycle.move(order, to=OrderStatus.PAID, event_id="event-1", reason="late")

    assert order.status == "paid"
    assert lifecycle.lacking(short, order) == f"{serum.sku} (wanted 2, available 1)"
    assert numbers(serum) == (10, 9)
    assert numbers(toner) == (5, 0), "an order takes all of its lines or none"


def test_an_unpaid_order_that_is_cancelled_releases_its_reservation(serum: Product) -> None:
    order = cancelled(an_order((serum, 2)), reason="expire")

    assert (order.status, order.is_held) == ("cancelled", False)
    assert numbers(serum) == (10, 0)
    assert movements(order, serum) == [("reserve", 0, 2), ("release", 0, -2)]
    assert OrderTransition.objects.get(order=order).reason == "expire"


def test_a_payment_reversed_before_shipping_reserves_the_stock_again(serum: Product) -> None:
    order = waiting(paid(an_order((serum, 2))))

    assert (order.status, order.is_held) == ("pending", False)
    assert numbers(serum) == (10, 2)
    assert movements(order, serum)[-1] == ("unsell", 2, 2)


def test_a_payment_reversed_after_shipping_returns_nothing(serum: Product) -> None:
    order = cancelled(shipped(paid(an_order((serum, 2)))), reason="deny")

    assert order.status == "cancelled"
    assert numbers(serum) == (8, 0)


def test_goods_that_come_back_are_on_the_shelf_again(serum: Product) -> None:
    order = cancelled(shipped(paid(an_order((serum, 2)))))
    Order.objects.filter(pk=order.pk).update(returned_at=timezone.now())

    order = cancelled(order)

    assert numbers(serum) == (10, 0)


def test_a_shipped_order_that_is_reversed_and_paid_again_is_sold_once(serum: Product) -> None:
    order = cancelled(shipped(paid(an_order((serum, 2)))))

    order = paid(order)

    assert order.status == "paid"
    assert numbers(serum) == (8, 0)


def test_partial_refunds_add_up_and_keep_the_stock_sold(serum: Product) -> None:
    order = paid(an_order((serum, 2)))

    order = refunded(order, 30_000)
    assert order.status == "partly_refunded"
    order = refunded(order, 70_000)

    assert (order.status, order.refunded_rupiah) == ("partly_refunded", 70_000)
    assert numbers(serum) == (8, 0)


def test_a_full_refund_before_shipping_returns_the_stock(serum: Product) -> None:
    order = paid(an_order((serum, 2)))
    refunded(order, 30_000)

    order = refunded(order, 100_000)

    assert (order.status, order.refunded_rupiah) == ("refunded", 100_000)
    assert numbers(serum) == (10, 0)
    assert movements(order, serum)[-1] == ("return", 2, 0)


def test_a_full_refund_after_shipping_returns_nothing(serum: Product) -> None:
    order = refunded(shipped(paid(an_order((serum, 2)))), 100_000)

    assert order.status == "refunded"
    assert numbers(serum) == (8, 0)


def test_each_change_is_recorded_once_with_its_cause(serum: Product) -> None:
    order = an_order((serum, 2))
    for _ in range(2):
        paid(order, "event-paid")
    for _ in range(2):
        waiting(order, "event-reversed")
    assert transitions(order) == [("pending", "paid"), ("paid", "pending")]
    assert [kind for kind, *_ in movements(order, serum)] == ["reserve", "sell", "unsell"]
    assert numbers(serum) == (10, 2)


def test_an_order_that_lacked_its_stock_takes_it_when_it_is_there(serum: Product) -> None:
    order = expired(an_order((serum, 2)))
    cart = place((serum, 9))
    paid(order, "event-1")
    cancelled(Order.objects.get(pk=cart.order_id))
    assert numbers(serum) == (10, 0)

    paid(order, "event-2")

    assert numbers(serum) == (8, 0)


def test_an_order_that_is_over_never_waits_again(serum: Product) -> None:
    order = expired(an_order((serum, 1)))

    with pytest.raises(TransitionRefused):
        waiting(order)


def test_an_effect_that_is_rolled_back_can_be_applied_again(serum: Product) -> None:
    order = an_order((serum, 2))
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        paid(order, "event-1")
        raise ZeroDivisionError
    assert numbers(serum) == (10, 2)

    paid(order, "event-1")

    assert numbers(serum) == (8, 0)


@pytest.mark.parametrize(
    "broken",
    [
        {"status": "lost"},
        {"total_rupiah": -1},
        {"refunded_rupiah": -1},
        {"refunded_rupiah": 100_001},
    ],
)
def test_the_database_refuses_an_impossible_order(
    serum: Product, broken: dict[str, object]
) -> None:
    order = an_order((serum, 2))

    with pytest.raises(IntegrityError), transaction.atomic():
        Order.objects.filter(pk=order.pk).update(**broken)
