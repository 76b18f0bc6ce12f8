"""The shop's routes as a client sees them: status, media type, body."""

import json
from collections import Counter
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orders.models import CheckoutRequest, Order, Product
from orders.problems import CONTENT_TYPE
from tests.integration.orders.shop import METHOD, a_product, numbers, paid
from tests.integration.orders.together import together

pytestmark = pytest.mark.django_db


def body(*wanted: tuple[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "items": [{"sku": sku, "quantity": quantity} for sku, quantity in wanted],
        "email": "sari@example.com",
        "payment_method": METHOD,
    } | changes


def post(client: Client, document: object, key: str | None = "key-1") -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post("/v1/checkout", document, content_type="application/json", headers=headers)


def problem(response: Any, status: int, kind: str) -> dict[str, Any]:
    """The problem document of this kind."""
    assert (response.status_code, response["Content-Type"]) == (status, CONTENT_TYPE)
    document: dict[str, Any] = json.loads(response.content)
    assert document["status"] == status
    assert document["type"] == f"urn:problem-type:skincare:{kind}"
    assert document["title"]
    return document


def test_a_checkout_answers_with_the_order(client: Client) -> None:
    serum = a_product(price_rupiah=75_000)

    response = post(client, body((serum.sku, 2)))

    assert response.status_code == 201
    order = Order.objects.get()
    assert response.json() == {
        "order_id": str(order.pk),
        "number": order.number,
        "status": "pending",
        "payment_method": METHOD,
        "total_rupiah": 150_000,
        "currency": "IDR",
    }
    assert response["Location"] == f"/v1/orders/{order.pk}"
    assert (order.user_id, order.language) == ("guest", "id")


def test_the_same_request_again_gets_the_same_bytes(client: Client) -> None:
    serum = a_product()

    first, again = (post(client, body((serum.sku, 2))) for _ in range(2))

    assert again.status_code == 201
    assert again.content == first.content
    assert again["Location"] == first["Location"]
    assert Order.objects.count() == 1


def test_the_buyer_is_the_session_never_the_body(client: Client) -> None:
    serum, buyer = a_product(), User.objects.create_user("sari")
    client.force_login(buyer)

    post(client, body((serum.sku, 1)))
    response = post(client, body((serum.sku, 1), user_id="7"), key="key-2")

    assert problem(response, 422, "invalid-request")["errors"][0]["field"] == "user_id"
    assert Order.objects.get().user_id == str(buyer.pk)


def test_the_language_of_the_emails_can_be_chosen(client: Client) -> None:
    post(client, body((a_product().sku, 1), language="en"))

    assert Order.objects.get().language == "en"


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (None, "missing-idempotency-key"),
        ("", "missing-idempotency-key"),
        ("kunci baru", "invalid-idempotency-key"),
        ("k" * 256, "invalid-idempotency-key"),
    ],
)
def test_a_key_that_is_missing_or_malformed_is_400(
    client: Client, key: str | None, kind: str
) -> None:
    document = problem(post(client, body((a_product().sku, 1)), key=key), 400, kind)

    assert document["errors"][0]["field"] == "Idempotency-Key"


def test_a_key_of_255_characters_is_fine(client: Client) -> None:
    assert post(client, body((a_product().sku, 1)), key="~" * 255).status_code == 201


def test_another_body_under_the_same_key_is_409(client: Client) -> None:
    serum = a_product()
    post(client, body((serum.sku, 2)))

    document = problem(post(client, body((serum.sku, 1))), 409, "idempotency-key-reused")

    assert document["errors"] == [
        {
            "field": "Idempotency-Key",
            "rule": "was used before with another body: use a new one",
        }
    ]


def test_not_enough_stock_is_409_and_names_the_quantity(client: Client) -> None:
    serum, last = a_product(), a_product(stocked=1)

    response = post(client, body((serum.sku, 1), (last.sku, 2)))

    assert problem(response, 409, "not-enough-stock") == {
        "type": "urn:problem-type:skincare:not-enough-stock",
        "title": "There is not enough stock.",
        "status": 409,
        "detail": "items[1].quantity: must be at most 1, that is all we have",
        "errors": [
            {
                "field": "items[1].quantity",
                "rule": "must be at most 1, that is all we have",
            }
        ],
    }


@pytest.mark.parametrize(
    ("change", "kind", "field"),
    [
        ({"items": []}, "empty-cart", "items"),
        ({"items": [{"sku": "NO-SUCH", "quantity": 1}]}, "unknown-sku", "items[0].sku"),
        (
            {"items": [{"sku": "A-1", "quantity": 0}]},
            "quantity-out-of-range",
            "items[0].quantity",
        ),
        (
            {"items": [{"sku": "A-1", "quantity": 10**30}]},
            "quantity-out-of-range",
            "items[0].quantity",
        ),
        (
            {"items": [{"sku": "A-1", "quantity": 1}] * 2},
            "duplicate-sku",
            "items[1].sku",
        ),
        ({"items": [{"sku": "A-1", "quantity": 1}] * 51}, "too-many-lines", "items"),
        ({"email": "sari"}, "invalid-email", "email"),
        ({"payment_method": "cash"}, "unknown-payment-method", "payment_method"),
        ({"payment_method": "free"}, "unknown-payment-method", "payment_method"),
        ({"items": None}, "invalid-request", "items"),
        ({"items": [{"sku": "A-1"}]}, "invalid-request", "items[0].quantity"),
        (
            {"items": [{"sku": "A-1", "quantity": "1"}]},
            "invalid-request",
            "items[0].quantity",
        ),
        (
            {"items": [{"sku": "A-1", "quantity": 1.5}]},
            "invalid-request",
            "items[0].quantity",
        ),
        (
            {"items": [{"sku": "A-1", "quantity": True}]},
            "invalid-request",
            "items[0].quantity",
        ),
        (
            {"items": [{"sku": "A-1", "quantity": 1, "price_rupiah": 1}]},
            "invalid-request",
            "items[0].price_rupiah",
        ),
        ({"email": "\ud800@example.com"}, "invalid-email", "email"),
        ({"language": "fr"}, "invalid-request", "language"),
        ({"total_rupiah": 1}, "invalid-request", "total_rupiah"),
    ],
)
def test_a_field_that_breaks_its_rule_is_422_and_named(
    client: Client, change: dict[str, Any], kind: str, field: str
) -> None:
    serum = a_product()

    response = post(client, json.dumps(body((serum.sku, 1)) | change))

    document = problem(response, 422, kind)
    assert [error["field"] for error in document["errors"]] == [field]
    assert document["errors"][0]["rule"]
    assert not Order.objects.exists()
    assert numbers(serum) == (10, 0)


def test_a_key_that_is_there_twice_is_refused_as_readers_pick_different_ones(
    client: Client,
) -> None:
    cart = json.dumps(body((a_product().sku, 1)))

    response = post(client, cart[:-1] + ', "email": "another@example.com"}')

    problem(response, 400, "unreadable-body")
    assert not Order.objects.exists()


@pytest.mark.parametrize("document", ["", "{", "[]", "null", '"cart"', "\x00"])
def test_a_body_that_is_no_cart_is_refused(client: Client, document: str) -> None:
    response = post(client, document)

    assert response.status_code in (400, 422)
    assert response["Content-Type"] == CONTENT_TYPE


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    field=st.sampled_from(["items", "sku", "quantity", "email", "payment_method", "language"]),
    value=ANY_JSON,
)
def test_no_value_of_a_field_breaks_checkout(client: Client, field: str, value: object) -> None:
    cart = body(("NO-SUCH", 1))
    (cart["items"][0] if field in ("sku", "quantity") else cart)[field] = value

    response = post(client, json.dumps(cart))

    assert (response.status_code, response["Content-Type"]) == (422, CONTENT_TYPE)


@pytest.mark.django_db(transaction=True)
def test_twenty_clients_who_want_the_last_piece_get_one_201() -> None:
    last = a_product(stocked=1)

    answers = together(
        [partial(post, Client(), body((last.sku, 1)), key=str(uuid4())) for _ in range(20)]
    )

    assert Counter(answer.status_code for answer in answers) == {201: 1, 409: 19}  # type: ignore[union-attr]
    assert numbers(last) == (1, 1)


def test_an_order_can_be_looked_at_without_the_buyers_address(client: Client) -> None:
    serum = a_product(price_rupiah=75_000, name="Serum")
    order_id = post(client, body((serum.sku, 2))).json()["order_id"]
    order = paid(Order.objects.get())

    response = client.get(f"/v1/orders/{order_id}")

    assert response.status_code == 200
    document = response.json()
    for name in ("created_at", "paid_at"):
        told = datetime.fromisoformat(document.pop(name))
        assert abs(told - getattr(order, name)) < timedelta(milliseconds=1)
    assert document == {
        "order_id": order_id,
        "number": order.number,
        "status": "paid",
        "payments": [],
        "pay_until": None,
        "is_held": False,
        "payment_method": METHOD,
        "total_rupiah": 150_000,
        "refunded_rupiah": 0,
        "currency": "IDR",
        "lines": [
            {
                "sku": serum.sku,
                "name": "Serum",
                "quantity": 2,
                "unit_price_rupiah": 75_000,
                "amount_rupiah": 150_000,
            }
        ],
        "shipped_at": None,
    }
    assert b"sari" not in response.content


def test_an_unknown_order_is_404(client: Client) -> None:
    problem(client.get(f"/v1/orders/{uuid4()}"), 404, "order-not-found")


def test_an_id_that_is_no_uuid_is_422(client: Client) -> None:
    document = problem(client.get("/v1/orders/SKN-1"), 422, "invalid-request")

    assert [error["field"] for error in document["errors"]] == ["order_id"]


def test_products_are_searched_and_paged(client: Client) -> None:
    for name in ("Serum Mawar", "Serum Pegagan", "Serum Teh", "Sabun"):
        a_product(name=name, stocked=3, price_rupiah=40_000)

    first = client.get("/v1/products?q=serum&limit=2").json()
    second = client.get("/v1/products?q=serum&limit=2&offset=2").json()

    assert (first["total"], first["limit"], first["offset"]) == (3, 2, 0)
    assert [item["name"] for item in first["items"]] == ["Serum Mawar", "Serum Pegagan"]
    assert [item["name"] for item in second["items"]] == ["Serum Teh"]
    assert first["items"][0] == {
        "sku": Product.objects.get(name="Serum Mawar").sku,
        "name": "Serum Mawar",
        "description": "",
        "category": "other",
        "picture_url": None,
        "price_rupiah": 40_000,
        "currency": "IDR",
        "available": 3,
    }


def test_no_words_list_all_products(client: Client) -> None:
    for _ in range(3):
        a_product()

    assert client.get("/v1/products").json()["total"] == 3


def test_what_is_reserved_is_not_available(client: Client) -> None:
    serum = a_product(stocked=3)
    post(client, body((serum.sku, 2)))

    assert client.get("/v1/products").json()["items"][0]["available"] == 1


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"limit": "x"}, "limit"),
        ({"offset": -1}, "offset"),
        ({"q": "a" * 201}, "q"),
    ],
)
def test_a_page_out_of_range_is_422(client: Client, query: dict[str, Any], field: str) -> None:
    document = problem(client.get("/v1/products", query), 422, "invalid-request")

    assert [error["field"] for error in document["errors"]] == [field]


def test_a_nul_in_the_words_is_no_error(client: Client) -> None:
    assert client.get("/v1/products?q=%00").status_code == 200


def test_openapi_names_the_header_the_limits_and_every_answer(client: Client) -> None:
    openapi = client.get("/v1/openapi.json").json()
    paths = openapi["paths"]

    checkout = paths["/v1/checkout"]["post"]
    (header,) = checkout["parameters"]
    assert (header["name"], header["in"], header["required"]) == ("Idempotency-Key", "header", True)
    assert set(checkout["responses"]) == {"201", "400", "401", "409", "413", "422", "429", "503"}
    every_route = {"429", "503"}  # too often, or a database that is too slow
    looked_at = paths["/v1/orders/{order_id}"]["get"]["responses"]
    assert set(looked_at) == {"200", "404", "422"} | every_route
    assert set(paths["/v1/products"]["get"]["responses"]) == {"200", "422"} | every_route
    for path, methods in paths.items():
        for operation in methods.values():
            for status in every_route:
                answer = operation["responses"][status]
                assert answer["headers"]["Retry-After"]["schema"]["type"] == "integer", path
    assert header["schema"]["maxLength"] == 255
    assert CheckoutRequest._meta.get_field("key").max_length == 255
    refusal = checkout["responses"]["409"]["content"]
    assert list(refusal) == ["application/problem+json"]
    assert list(checkout["responses"]["201"]["content"]) == ["application/json"]
    schemas = openapi["components"]["schemas"]
    items = schemas["CheckoutIn"]["properties"]["items"]
    quantity = schemas["ItemIn"]["properties"]["quantity"]
    assert (items["minItems"], items["maxItems"]) == (1, 50)
    assert (quantity["minimum"], quantity["maximum"]) == (1, 99)
