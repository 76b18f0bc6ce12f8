"""The plain admin: people find what happened, and cannot rewrite it."""

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from orders.models import (
    HIGHEST_PRICE,
    CheckoutRequest,
    Order,
    OrderLine,
    OrderTransition,
    Product,
    StockMovement,
)
from orders.search import search_products
from skincare.events.models import OutboxEvent
from skincare.events.schema import new_event_id
from tests.integration.orders.shop import a_product, an_order, numbers, paid, place

pytestmark = pytest.mark.django_db

MODELS = [Product, Order, OrderLine, OrderTransition, StockMovement, CheckoutRequest]
READ_ONLY = MODELS[1:]


def page(model: type, name: str, *args: object) -> str:
    return reverse(f"admin:orders_{model.__name__.lower()}_{name}", args=args)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_its_list_and_its_pages(model: type, admin_client: Client) -> None:
    paid(an_order((a_product(), 1)))
    row = admin.site._registry[model].model._default_manager.latest("pk")

    assert admin_client.get(page(model, "changelist")).status_code == 200
    assert admin_client.get(page(model, "change", row.pk)).status_code == 200


@pytest.mark.parametrize("model", READ_ONLY)
def test_what_happened_is_read_only(model: type, admin_client: Client) -> None:
    paid(an_order((a_product(), 1)))
    row = admin.site._registry[model].model._default_manager.latest("pk")
    change = page(model, "change", row.pk)

    assert admin_client.get(page(model, "add")).status_code == 403
    assert admin_client.post(change, {}).status_code == 403
    assert admin_client.post(page(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    assert b'name="_save"' not in admin_client.get(change).content


@pytest.mark.parametrize("term", ["number", "id", "email", "paid event", "confirmed event"])
def test_an_order_is_found_by_number_id_email_and_event(term: str, admin_client: Client) -> None:
    serum = a_product()
    order = paid(an_order((serum, 1)), "event-1")
    other = place((serum, 1), email="budi@example.com")
    words = {
        "number": order.number.lower(),
        "id": str(order.pk),
        "email": order.email,
        "paid event": "event-1",
        "confirmed event": new_event_id("order.confirmed", str(order.pk)),
    }[term]

    html = admin_client.get(page(Order, "changelist"), {"q": f" {words} "}).content.decode()

    assert order.number in html
    assert other.number not in html


@pytest.mark.parametrize("model", [StockMovement, OrderTransition])
def test_what_an_event_did_is_found_by_event_and_order_number(
    model: type, admin_client: Client
) -> None:
    serum = a_product()
    order = paid(an_order((serum, 1)), "event-1")
    other = paid(an_order((serum, 1)), "event-2")

    for words in ("event-1", order.number):
        html = admin_client.get(page(model, "changelist"), {"q": words}).content.decode()
        assert order.number in html
        assert other.number not in html


def test_an_order_leads_to_its_payments_and_events(admin_client: Client) -> None:
    order = paid(an_order((a_product(), 1)), "event-1")

    html = admin_client.get(page(Order, "change", order.pk)).content.decode()

    for link in (
        f"/admin/payments/payment/?order__id__exact={order.pk}",
        f"/admin/events/processedevent/?q={order.pk}",
        f"/admin/events/outboxevent/?q={order.pk}",
    ):
        assert f'href="{link}"' in html
        assert admin_client.get(link).status_code == 200
    assert OutboxEvent.objects.get().event_id in admin_client.get(link).content.decode()


def test_a_movement_leads_to_its_order_and_event(admin_client: Client) -> None:
    order = paid(an_order((a_product(), 1)), "event-1")

    html = admin_client.get(page(StockMovement, "changelist")).content.decode()

    assert f'href="{page(Order, "change", order.pk)}"' in html
    assert 'href="/admin/operations/events/event-1/"' in html


def test_held_orders_are_listed_apart(admin_client: Client) -> None:
    serum = a_product()
    held = an_order((serum, 1))
    fine = place((serum, 1))
    Order.objects.filter(pk=held.pk).update(held_reason="paid twice")

    yes = admin_client.get(page(Order, "changelist"), {"held": "yes"}).content.decode()
    no = admin_client.get(page(Order, "changelist"), {"held": "no"}).content.decode()

    assert (held.number in yes, fine.number in yes) == (True, False)
    assert (held.number in no, fine.number in no) == (False, True)


def test_an_edited_product_is_found_by_its_new_name(admin_client: Client) -> None:
    serum = a_product(name="Serum", stocked=10)

    response = admin_client.post(
        page(Product, "change", serum.pk),
        {
            "sku": serum.sku,
            "name": "Ampul Mawar",
            "description": "baru",
            "price_rupiah": "45000",
            "category": "serum",
            "is_active": "on",
            "stock": "999",
            "reserved": "9",
        },
    )

    assert response.status_code == 302
    assert [product.name for product in search_products("ampul")] == ["Ampul Mawar"]
    assert numbers(serum) == (10, 0), "the numbers move only with a movement"


def test_saving_a_product_does_not_undo_what_was_sold_meanwhile(admin_client: Client) -> None:
    serum = a_product(stocked=10)
    opened = Product.objects.get(pk=serum.pk)
    paid(an_order((serum, 3)))
    form = type("Form", (), {"changed_data": ["name"]})()
    opened.name = "Ampul"

    admin.site._registry[Product].save_model(None, opened, form, change=True)  # type: ignore[arg-type]

    assert numbers(serum) == (7, 0)
    assert serum.name == "Ampul"


def test_a_new_product_is_in_the_search_and_has_no_stock(admin_client: Client) -> None:
    admin_client.post(
        page(Product, "add"),
        {
            "sku": "NEW-1",
            "name": "Masker",
            "category": "mask",
            "price_rupiah": "1000",
            "is_active": "on",
        },
    )

    product = search_products("masker").get()
    assert numbers(product) == (0, 0)


def test_a_price_is_refused_of_which_no_order_could_be_paid(admin_client: Client) -> None:
    """The most expensive order that settings allow, 500 lines of 10,000 pieces, fits its column."""
    assert HIGHEST_PRICE * 500 * 10_000 < 2**63

    answer = admin_client.post(
        page(Product, "add"),
        {"sku": "NEW-1", "name": "Masker", "category": "mask", "price_rupiah": HIGHEST_PRICE + 1},
    )

    assert f"less than or equal to {HIGHEST_PRICE}" in answer.content.decode()
    assert not Product.objects.exists()


def test_a_product_cannot_be_deleted(admin_client: Client) -> None:
    serum = a_product()

    response = admin_client.post(page(Product, "delete", serum.pk), {"post": "yes"})

    assert response.status_code == 403
    assert Product.objects.filter(pk=serum.pk).exists()
