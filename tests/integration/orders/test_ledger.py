"""The stock ledger: append-only, and always the sum of the shelf."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from django.db.models import Model, Sum
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orders import stock
from orders.append_only import AppendOnlyError
from orders.exceptions import NotEnoughStock
from orders.models import Order, OrderTransition, Product, StockMovement
from tests.integration.orders.shop import (
    a_product,
    an_order,
    cancelled,
    expired,
    numbers,
    paid,
    refunded,
    waiting,
)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", [StockMovement, OrderTransition])
def test_an_append_only_row_is_neither_changed_nor_deleted(model: type[Model]) -> None:
    paid(an_order((a_product(), 1)))
    row = model._default_manager.latest("id")

    with pytest.raises(AppendOnlyError):
        row.save()
    with pytest.raises(AppendOnlyError):
        row.delete()
    rows = model._default_manager.filter(pk=row.pk)
    for change in (lambda: rows.update(event_id="another"), rows.delete):
        with pytest.raises(IntegrityError, match="is append-only"), transaction.atomic():
            change()
    assert model._default_manager.get(pk=row.pk).event_id == row.event_id  # type: ignore[attr-defined]


def test_one_event_moves_a_product_once() -> None:
    serum = a_product(stocked=10)
    arrival = [stock.plan_receive(serum.pk, 5)]
    stock.apply_movements(arrival, event_id="delivery-1", order_id=None)

    with pytest.raises(IntegrityError), transaction.atomic():
        stock.apply_movements(arrival, event_id="delivery-1", order_id=None)

    assert numbers(serum) == (15, 0)


@pytest.mark.parametrize(
    "broken", [{"stock": -1}, {"reserved": -1}, {"reserved": 11}, {"price_rupiah": -1}]
)
def test_the_database_refuses_an_impossible_product(broken: dict[str, int]) -> None:
    serum = a_product(stocked=10)

    with pytest.raises(IntegrityError), transaction.atomic():
        Product.objects.filter(pk=serum.pk).update(**broken)


def check_out(products: list[Product]) -> Order:
    return an_order(*[(product, 2) for product in products])


def full_refund(order: Order) -> Order:
    return refunded(order, order.total_rupiah)


MOVES: dict[str, Callable[[Order], Order]] = {
    "paid": paid,
    "cancelled": cancelled,
    "expired": expired,
    "refunded": full_refund,
    "waiting": waiting,
}
POSSIBLE = {
    "pending": ["paid", "cancelled", "expired"],
    "paid": ["paid", "cancelled", "refunded", "waiting"],
    "cancelled": ["paid", "cancelled"],
    "expired": ["paid"],
    "refunded": ["paid", "cancelled"],
}


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_movements_add_up_to_the_products_numbers(data: st.DataObject) -> None:
    products = [a_product(stocked=4), a_product(stocked=7)]
    orders: list[Order] = []
    for _ in range(data.draw(st.integers(3, 12), label="steps")):
        if not orders or data.draw(st.booleans(), label="new order"):
            try:
                orders.append(check_out(data.draw(st.sampled_from([products, products[:1]]))))
            except NotEnoughStock:
                continue
        else:
            order = data.draw(st.sampled_from(orders))
            order.refresh_from_db()
            MOVES[data.draw(st.sampled_from(POSSIBLE[order.status]))](order)

    for product in products:
        sums = StockMovement.objects.filter(product=product).aggregate(
            stock=Sum("stock_delta"), reserved=Sum("reserved_delta")
        )
        assert (sums["stock"], sums["reserved"]) == numbers(product)


def test_an_order_without_movements_holds_nothing() -> None:
    assert stock.lines_with_holdings(Order(pk=uuid4())) == ([], {})
