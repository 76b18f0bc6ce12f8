"""What a client shows before the checkout: products, categories, ways to pay, kinds of problems."""

import json
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from orders import catalogue
from orders.models import Category, Product
from orders.problem_types import PROBLEM_TYPES
from tests.integration.orders.shop import METHOD, a_product

pytestmark = pytest.mark.django_db


def get(client: Client, path: str, **headers: str) -> Any:
    response = client.get(path, headers=headers)
    assert response.status_code == 200, response.content
    return response.json()


def test_a_product_is_found_by_its_sku_with_category_and_picture(client: Client) -> None:
    catalogue.seed()

    product = get(client, "/v1/products/SRM-VITC-30")

    assert product["category"] == "serum"
    assert product["picture_url"] == "http://testserver/static/orders/products/serum.png"
    assert product in get(client, "/v1/products?q=vitamin")["items"]


def test_a_picture_elsewhere_keeps_its_address_and_none_is_null(client: Client) -> None:
    Product.objects.filter(pk=a_product().pk).update(picture="https://cdn.example/a.png", sku="A-1")
    Product.objects.filter(pk=a_product().pk).update(sku="A-2")

    assert get(client, "/v1/products/A-1")["picture_url"] == "https://cdn.example/a.png"
    assert get(client, "/v1/products/A-2")["picture_url"] is None


def test_every_product_of_the_catalogue_has_a_picture_that_is_there() -> None:
    catalogue.seed()

    for product in Product.objects.all():
        assert finders.find(product.picture), product.sku


@pytest.mark.parametrize("sku", ["NO-SUCH", "no%00sku", "x" * 40])
def test_a_product_that_is_not_shown_is_a_problem(client: Client, sku: str) -> None:
    Product.objects.filter(pk=a_product().pk).update(sku="NO-SUCH", is_active=False)

    response = client.get(f"/v1/products/{sku}")

    assert response.status_code == 404
    assert json.loads(response.content)["type"] == "urn:problem-type:skincare:product-not-found"


def test_products_are_narrowed_by_category(client: Client) -> None:
    catalogue.seed()

    found = get(client, "/v1/products?category=sunscreen")

    assert {product["category"] for product in found["items"]} == {"sunscreen"}
    assert found["total"] == 2
    assert client.get("/v1/products?category=shoes").status_code == 422


def test_categories_are_those_that_have_products(client: Client) -> None:
    Product.objects.filter(pk__in=[a_product().pk, a_product().pk]).update(category="mask")
    Product.objects.filter(pk=a_product().pk).update(category="serum", is_active=False)

    assert get(client, "/v1/categories")["items"] == [
        {"name": "mask", "label": Category.MASK.label, "products": 2}
    ]


def test_ways_to_pay_are_those_that_checkout_takes(client: Client) -> None:
    names = [one["name"] for one in get(client, "/v1/payment-methods")["items"]]

    assert METHOD in names
    assert "free" not in names
    for name in names:
        answer = client.post(
            "/v1/checkout",
            {
                "items": [{"sku": a_product().sku, "quantity": 1}],
                "email": "sari@example.com",
                "payment_method": name,
            },
            content_type="application/json",
            headers={"Idempotency-Key": name},
        )
        assert answer.status_code == 201, answer.content


def test_the_kinds_of_problems_are_told_in_both_languages(client: Client) -> None:
    kinds = get(client, "/v1/problems")["items"]

    assert {kind["name"] for kind in kinds} == set(PROBLEM_TYPES)
    for kind in kinds:
        for texts in (kind["title"], kind["remedy"]):
            assert texts["en"].endswith(".")
            assert texts["id"].endswith(".")
