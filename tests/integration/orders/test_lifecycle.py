"""What events do to an order and its stock."""

from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction

from orders import lifecycle
from orders.exceptions import NotPaidYet, OrderNotFound, RefundExceedsTotal
from orders.models import Order, OrderTransition, Product
from tests.integration.orders.shop import (
    a_product,
    an_order,
    cancelled,
    expired,
    movements,
    numbers,
    paid,
    place,
    refunded,
    shipped,
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
def test_a_second_settlement_of_an_order_that_has_its_money_changes_nothing(
    serum: Product, status: str
) -> None:
    order = paid(an_order((serum, 2)))
    if status != "paid":
        refunded(order, 100_000 if status == "refunded" else 30_000)
    before = numbers(serum)

    order = paid(order, "event-2")

    assert order.status == status
    assert numbers(serum) == before
    assert transitions(order)[-1] == (status, status)


@pytest.mark.parametrize("lapse", [cancelled, expired])
def test_a_late_settlement_takes_the_stock_again(serum: Product, lapse: object) -> None:
    order = lapse(an_order((serum, 2)))  # type: ignore[operator]
    assert numbers(serum) == (10, 0)

    order = paid(order)

    assert (order.status, order.is_held) == ("paid", False)
    assert numbers(serum) == (8, 0)
    assert movements(order, serum) == [("reserve", 0, 2), ("release", 0, -2), ("retake", -2, 0)]


def test_a_late_settlement_without_stock_is_paid_and_held(serum: Product) -> None:
    toner = a_product(stocked=5)
    order = expired(an_order((serum, 2), (toner, 1)))
    place((serum, 9))

    order = paid(order)

    assert order.status == "paid"
    assert order.held_reason == (
        "paid after its reservation was given back, and out of stock: "
        f"{serum.sku} (wanted 2, available 1)"
    )
    assert numbers(serum) == (10, 9)
    assert numbers(toner) == (5, 0), "an order takes all of its lines or none"


def test_an_unpaid_order_that_is_cancelled_releases_its_reservation(serum: Product) -> None:
    order = cancelled(an_order((serum, 2)), reason="expire")

    assert (order.status, order.is_held) == ("cancelled", False)
    assert numbers(serum) == (10, 0)
    assert movements(order, serum) == [("reserve", 0, 2), ("release", 0, -2)]
    assert OrderTransition.objects.get(order=order).reason == "expire"


def test_a_payment_reversed_before_shipping_returns_the_stock(serum: Product) -> None:
    order = cancelled(paid(an_order((serum, 2))))

    assert (order.status, order.is_held) == ("cancelled", False)
    assert numbers(serum) == (10, 0)
    assert movements(order, serum)[-1] == ("return", 2, 0)


def test_a_payment_reversed_after_shipping_is_held_and_returns_nothing(serum: Product) -> None:
    order = cancelled(shipped(paid(an_order((serum, 2)))), reason="deny")

    assert order.status == "cancelled"
    assert order.held_reason == "payment reversed after shipping: deny"
    assert numbers(serum) == (8, 0)


def test_a_shipped_order_that_is_reversed_and_paid_again_is_sold_once(serum: Product) -> None:
    order = cancelled(shipped(paid(an_order((serum, 2)))))

    order = paid(order)

    assert order.status == "paid"
    assert numbers(serum) == (8, 0)


def test_a_payment_reversed_after_a_partial_refund_is_held(serum: Product) -> None:
    order = refunded(paid(an_order((serum, 2))), 30_000)

    order = cancelled(order, reason="deny")

    assert order.status == "partly_refunded"
    assert order.held_reason == "payment reversed after a partial refund: deny"
    assert numbers(serum) == (8, 0)


def test_a_failure_of_an_order_that_is_over_changes_nothing(serum: Product) -> None:
    over = [
        expired(an_order((serum, 1))),
        cancelled(an_order((serum, 1))),
        refunded(paid(an_order((serum, 1))), 50_000),
    ]

    for order in over:
        before = order.status
        assert cancelled(order).status == before
    assert numbers(serum) == (10, 0)


def test_partial_refunds_add_up_and_keep_the_stock_sold(serum: Product) -> None:
    order = paid(an_order((serum, 2)))

    assert refunded(order, 30_000).status == "partly_refunded"
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


def test_an_older_refund_total_that_arrives_later_changes_nothing(serum: Product) -> None:
    order = paid(an_order((serum, 2)))
    refunded(order, 70_000)

    order = refunded(order, 30_000)

    assert (order.status, order.refunded_rupiah) == ("partly_refunded", 70_000)


@pytest.mark.parametrize("total", [30_000, 100_000])
def test_a_refund_total_that_is_told_by_two_events_counts_once(serum: Product, total: int) -> None:
    order = refunded(paid(an_order((serum, 2))), total, "event-1")
    before = (order.status, order.refunded_rupiah, numbers(serum))

    order = refunded(order, total, "event-2")

    assert (order.status, order.refunded_rupiah, numbers(serum)) == before


def test_a_refund_of_more_than_the_total_is_refused(serum: Product) -> None:
    order = paid(an_order((serum, 2)))

    with pytest.raises(RefundExceedsTotal, match="100001 of 100000 rupiah"):
        refunded(order, 100_001)

    order.refresh_from_db()
    assert (order.status, order.refunded_rupiah) == ("paid", 0)


def test_a_refund_that_overtakes_its_settlement_waits_for_it(serum: Product) -> None:
    order = an_order((serum, 2))
    with pytest.raises(NotPaidYet):
        refunded(order, 100_000, "event-refund")
    paid(order)

    order = refunded(order, 100_000, "event-refund")

    assert order.status == "refunded"
    assert numbers(serum) == (10, 0)


def test_each_event_is_applied_once(serum: Product) -> None:
    order = an_order((serum, 2))
    for _ in range(2):
        paid(order, "event-paid")
        cancelled(order, "event-reversed")
    # Had the second round counted, the order would be paid and reversed twice.
    assert transitions(order) == [("pending", "paid"), ("paid", "cancelled")]
    assert [kind for kind, *_ in movements(order, serum)] == ["reserve", "sell", "return"]
    assert numbers(serum) == (10, 0)


def test_a_replayed_event_that_held_the_order_does_not_take_stock_later(serum: Product) -> None:
    order = expired(an_order((serum, 2)))
    cart = place((serum, 9))
    paid(order, "event-1")
    cancelled(Order.objects.get(pk=cart.order_id))

    order = paid(order, "event-1")

    assert order.is_held
    assert numbers(serum) == (10, 0)


def test_holding_an_order_keeps_every_reason_once(serum: Product) -> None:
    order = an_order((serum, 1))

    with transaction.atomic():
        lifecycle.hold(order_id=order.pk, reason="amount differs")
        lifecycle.hold(order_id=order.pk, reason="foreign currency")
        lifecycle.hold(order_id=order.pk, reason="amount differs")

    order.refresh_from_db()
    assert order.held_reason == "amount differs\nforeign currency"
    assert order.status == "pending"


def test_an_order_that_does_not_exist_is_said_to() -> None:
    order_id = uuid4()

    with pytest.raises(OrderNotFound, match=str(order_id)):
        lifecycle.mark_paid(order_id=order_id, event_id="event-1")


def test_an_effect_that_is_rolled_back_can_be_applied_again(serum: Product) -> None:
    order = an_order((serum, 2))
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        lifecycle.mark_paid(order_id=order.pk, event_id="event-1")
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
