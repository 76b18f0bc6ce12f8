"""Goods go out only with their money, and come back to the shelf."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from orders import goods
from orders.exceptions import (
    AlreadyReceived,
    CannotBeShipped,
    InvalidDelivery,
    NotShipped,
    ProductNotFound,
)
from orders.models import Order
from payments import shipping
from payments.holds import open_holds
from payments.money_check import check_money
from skincare.events.exceptions import InvalidMoment
from tests.integration.orders.shop import a_product, numbers
from tests.integration.payments.gateways import an_order, consume_all, midtrans_posts
from tests.unit.payments import midtrans_notifications as midtrans

pytestmark = pytest.mark.django_db


@pytest.fixture
def ayu() -> Any:
    return get_user_model().objects.create_user("ayu")


def notify(order: Order, document: dict[str, Any]) -> None:
    assert midtrans_posts({**document, "order_id": str(order.pk)}).status_code == 200


def paid_order() -> Order:
    order = an_order()
    notify(order, midtrans.card("settlement"))
    return consume_all(order)


def ship(order: Order, user: Any) -> Order:
    return shipping.ship(
        order_id=order.pk, shipped_at=timezone.now(), tracking_number=" JNE-1 ", actor=user.username
    )


def test_a_paid_order_is_shipped_once_with_its_tracking_number(ayu: Any) -> None:
    order = ship(paid_order(), ayu)

    assert order.shipped_at is not None
    assert (order.tracking_number, order.can_be_shipped) == ("JNE-1", False)
    assert LogEntry.objects.get().change_message.startswith("shipped: ")
    with pytest.raises(CannotBeShipped, match="it was shipped at"):
        ship(order, ayu)


def test_nothing_is_shipped_without_its_money(ayu: Any) -> None:
    waiting, held = an_order(), an_order()
    for number in ("1", "2"):
        notify(held, midtrans.card("settlement", transaction_id=f"t-{number}"))
    consume_all(held)
    reversed_since = paid_order()
    notify(reversed_since, midtrans.card("deny", status_code="202"))

    for order in (waiting, held, reversed_since):
        with pytest.raises(CannotBeShipped):
            ship(order, ayu)
        order.refresh_from_db()
        assert order.shipped_at is None


@pytest.mark.parametrize("ahead", [timedelta(days=1), timedelta(days=-400)])
def test_the_time_of_shipping_is_between_the_order_and_now(ahead: timedelta, ayu: Any) -> None:
    with pytest.raises(CannotBeShipped, match="between its order and now"):
        shipping.ship(
            order_id=paid_order().pk, shipped_at=timezone.now() + ahead, actor=ayu.username
        )


def test_a_time_that_cannot_be_is_refused(ayu: Any) -> None:
    with pytest.raises(InvalidMoment):
        shipping.ship(
            order_id=paid_order().pk,
            shipped_at=timezone.now().replace(year=9999),
            actor=ayu.username,
        )


@pytest.mark.parametrize(
    "document",
    [
        midtrans.card("chargeback"),
        midtrans.refunded(("r1", "150000.00"), transaction_status="refund"),
        midtrans.card("deny", status_code="202"),
    ],
    ids=["chargeback", "refund", "reversal"],
)
def test_goods_that_are_out_stay_off_the_shelf_and_wait_for_a_person(
    document: dict[str, Any], ayu: Any
) -> None:
    order = ship(paid_order(), ayu)
    product = order.lines.get().product
    notify(order, document)

    order = consume_all(order)

    assert numbers(product) == (8, 0)
    assert "goods_out" in [hold.code for hold in open_holds(order.pk)]
    assert [str(one) for one in check_money()] == []


def test_goods_that_come_back_are_for_sale_again(ayu: Any) -> None:
    order = ship(paid_order(), ayu)
    product = order.lines.get().product
    notify(order, midtrans.refunded(("r1", "150000.00"), transaction_status="refund"))
    consume_all(order)

    order = shipping.take_back(order_id=order.pk, reason="the parcel is here", actor=ayu.username)

    assert numbers(product) == (10, 0)
    assert (order.status, order.is_held) == ("refunded", False)
    assert [str(one) for one in check_money()] == []
    with pytest.raises(NotShipped):
        shipping.take_back(order_id=order.pk, reason="again", actor=ayu.username)


def test_what_was_never_shipped_cannot_come_back(ayu: Any) -> None:
    with pytest.raises(NotShipped):
        shipping.take_back(order_id=paid_order().pk, reason="x", actor=ayu.username)


# -- Goods that come in ----------------------------------------------------------------------------


def test_a_delivery_is_booked_once(ayu: Any) -> None:
    serum = a_product(stocked=10)

    movement = goods.receive(sku=serum.sku.lower(), pieces=5, delivery="DN-7", actor=ayu.username)

    assert (movement.kind, movement.stock_delta) == ("receive", 5)
    assert numbers(serum) == (15, 0)
    assert "DN-7" in LogEntry.objects.get().change_message
    with pytest.raises(AlreadyReceived):
        goods.receive(sku=serum.sku, pieces=5, delivery="DN-7", actor=ayu.username)
    assert numbers(serum) == (15, 0)


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"pieces": 0}, InvalidDelivery),
        ({"pieces": 1_000_001}, InvalidDelivery),
        ({"delivery": " "}, InvalidDelivery),
        ({"delivery": "a\nb"}, InvalidDelivery),
        ({"sku": "NO-SUCH"}, ProductNotFound),
        ({"sku": "A\x00"}, ProductNotFound),
    ],
)
def test_an_odd_delivery_is_refused(
    changes: dict[str, Any], refusal: type[Exception], ayu: Any
) -> None:
    serum = a_product(stocked=10)
    with pytest.raises(refusal):
        goods.receive(
            **{"sku": serum.sku, "pieces": 1, "delivery": "DN-1", "actor": "ayu", **changes}
        )
    assert numbers(serum) == (10, 0)


def test_no_more_pieces_are_booked_than_can_be_counted(ayu: Any) -> None:
    serum = a_product(stocked=2**31 - 10)

    with pytest.raises(InvalidDelivery):
        goods.receive(sku=serum.sku, pieces=10, delivery="DN-1", actor=ayu.username)
    goods.receive(sku=serum.sku, pieces=9, delivery="DN-1", actor=ayu.username)

    assert numbers(serum) == (2**31 - 1, 0)


# -- The pages -------------------------------------------------------------------------------------


def staff(*codenames: str) -> Client:
    user = get_user_model().objects.create_user("sari", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


def test_the_pages_ship_and_receive() -> None:
    order = paid_order()
    client = staff("view_order", "ship_order", "view_stockmovement", "receive_goods")
    page = reverse("operations:ship", args=[order.pk])
    assert "It was shipped" in client.get(page).content.decode()

    client.post(
        page,
        {
            "action": "ship",
            "shipped_at": f"{timezone.localtime():%Y-%m-%dT%H:%M:%S}",
            "tracking_number": "JNE-2",
        },
    )
    order.refresh_from_db()
    assert order.tracking_number == "JNE-2"
    assert "The goods came back" in client.get(page).content.decode()

    product = order.lines.get().product
    client.post(
        reverse("operations:receive_goods"), {"sku": product.sku, "pieces": "3", "delivery": "7"}
    )
    assert numbers(product) == (11, 0)


@pytest.mark.parametrize("shipped_at", ["", "soon", "9999-12-31T23:59", "0001-01-01T00:00"])
def test_an_odd_time_is_refused_on_the_page(shipped_at: str) -> None:
    order = paid_order()
    page = reverse("operations:ship", args=[order.pk])

    answer = staff("view_order", "ship_order").post(page, {"shipped_at": shipped_at}, follow=True)

    assert answer.status_code == 200
    assert "Nothing was done." in answer.content.decode()


def test_who_may_only_look_cannot_ship_or_receive() -> None:
    order = paid_order()
    client = staff("view_order", "view_stockmovement")

    ship_page = reverse("operations:ship", args=[order.pk])
    assert client.get(ship_page).status_code == 200
    assert client.post(ship_page, {"shipped_at": "2026-11-11T00:00"}).status_code == 403
    assert client.post(reverse("operations:receive_goods"), {"sku": "x"}).status_code == 403


@pytest.mark.parametrize(
    "document",
    [
        midtrans.card("deny", status_code="202"),
        midtrans.card("chargeback"),
        midtrans.card("a new word"),
    ],
    ids=["reversal", "chargeback", "unclear"],
)
def test_nothing_is_shipped_while_a_gateway_is_asked_whether_money_goes_back(
    document: dict[str, Any], ayu: Any, settings: Any
) -> None:
    order = paid_order()
    settings.PROVIDERS_ASKED = ["midtrans"]
    notify(order, document)

    with pytest.raises(CannotBeShipped, match="is being asked"):
        ship(order, ayu)


def test_a_repeated_settlement_that_waits_keeps_no_order_back(ayu: Any, settings: Any) -> None:
    order = an_order()
    notify(order, midtrans.card("capture"))
    consume_all(order)
    settings.PROVIDERS_ASKED = ["midtrans"]
    notify(order, midtrans.card("settlement"))

    assert ship(order, ayu).shipped_at is not None
