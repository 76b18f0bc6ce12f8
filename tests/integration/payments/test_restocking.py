"""A paid order that was out of stock gets its goods when they come in."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from orders import goods
from orders.models import Order, Product
from payments import decisions
from payments.expiry import expire_unpaid_orders
from payments.hold_codes import Decision, HoldCode
from payments.holds import open_holds
from payments.models import Hold
from payments.money_check import check_money
from payments.restocking import serve_out_of_stock
from skincare.events import relay
from tests.integration.orders.shop import a_product, aged, numbers, place
from tests.integration.payments.gateways import PRICE, consume_all, midtrans_posts
from tests.unit.payments import midtrans_notifications as midtrans

pytestmark = pytest.mark.django_db


@pytest.fixture
def ayu() -> Any:
    return get_user_model().objects.create_superuser("ayu")


@pytest.fixture
def product() -> Product:
    return a_product(stocked=2, price_rupiah=PRICE)


def paid_too_late(product: Product) -> Order:
    """An order whose time was over, whose goods went to somebody else, and whose money came."""
    placed = place((product, 2), payment_method="midtrans")
    order = Order.objects.get(pk=placed.order_id)
    aged(order, timedelta(days=3))
    assert expire_unpaid_orders() == 1
    other = place((product, 2), payment_method="midtrans")
    for paid in (other.order_id, placed.order_id):
        document = midtrans.card("settlement", order_id=paid, transaction_id=f"t-{paid}")
        assert midtrans_posts(document).status_code == 200
        consume_all(Order.objects.get(pk=paid))
    order.refresh_from_db()
    assert [hold.code for hold in open_holds(order.pk)] == [HoldCode.OUT_OF_STOCK]
    return order


def receive(product: Product, pieces: int, user: Any) -> None:
    goods.receive(sku=product.sku, pieces=pieces, delivery=uuid4().hex, actor=user.get_username())


def test_goods_that_come_in_go_to_the_order_that_waits_for_them(product: Product, ayu: Any) -> None:
    order = paid_too_late(product)
    receive(product, 5, ayu)

    assert serve_out_of_stock() == 1

    order.refresh_from_db()
    assert order.can_be_shipped
    assert numbers(product) == (3, 0)
    hold = Hold.objects.get(order=order)
    assert (hold.closed_how, hold.closed_reason) == (Decision.RESOLVED, "nothing is lacking")
    assert serve_out_of_stock() == 0
    assert list(check_money()) == []


def test_goods_that_are_not_enough_leave_it_waiting(product: Product, ayu: Any) -> None:
    order = paid_too_late(product)
    receive(product, 1, ayu)

    assert serve_out_of_stock() == 0

    order.refresh_from_db()
    assert order.is_held
    assert numbers(product) == (1, 0)
    assert list(check_money()) == []


def test_who_waits_longest_is_served_first(product: Product, ayu: Any) -> None:
    first, second = paid_too_late(product), None
    receive(product, 2, ayu)
    second = paid_too_late(product)
    receive(product, 2, ayu)

    assert serve_out_of_stock() == 1

    for order, is_served in ((first, True), (second, False)):
        order.refresh_from_db()
        assert order.can_be_shipped is is_served


def test_an_order_whose_goods_are_still_missing_keeps_nobody_else_waiting(
    product: Product, ayu: Any
) -> None:
    other = a_product(stocked=2, price_rupiah=PRICE)
    missing, there = paid_too_late(product), paid_too_late(other)
    receive(other, 2, ayu)

    assert serve_out_of_stock(limit=1) == 1

    for order, is_served in ((missing, False), (there, True)):
        order.refresh_from_db()
        assert order.can_be_shipped is is_served


def test_all_that_can_be_served_is_served_in_sweeps(product: Product, ayu: Any) -> None:
    orders = [paid_too_late(product)]
    for _ in range(2):
        receive(product, 2, ayu)
        orders.append(paid_too_late(product))
    receive(product, 6, ayu)

    assert [serve_out_of_stock(limit=2) for _ in range(3)] == [2, 1, 0]

    assert all(Order.objects.get(pk=order.pk).can_be_shipped for order in orders)
    assert list(check_money()) == []


def test_the_page_where_goods_are_booked_serves_it_at_once(product: Product, ayu: Any) -> None:
    order = paid_too_late(product)
    person = Client()
    person.force_login(ayu)
    form = {"sku": product.sku, "pieces": "2", "delivery": "D-1"}

    page = person.post(reverse("operations:receive_goods"), form, follow=True)

    assert "1 order(s) that waited for goods have them now." in page.content.decode()
    order.refresh_from_db()
    assert order.can_be_shipped


def test_a_person_can_try_again(product: Product, ayu: Any) -> None:
    order = paid_too_late(product)
    [hold] = open_holds(order.pk)
    receive(product, 2, ayu)

    decisions.dismiss(hold_id=hold.pk, reason="found some in the store room", actor="ayu")

    order.refresh_from_db()
    assert order.can_be_shipped


def test_the_relay_serves_them_too() -> None:
    [job] = [job for job in relay._jobs if job.name == "serve_out_of_stock"]
    assert job.run is serve_out_of_stock
