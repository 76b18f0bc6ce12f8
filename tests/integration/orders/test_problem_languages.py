"""Problems are read by buyers too: in Indonesian or English, as their browser asks."""

import json
import re
from typing import Any

import pytest
from django.test import Client

from orders.exceptions import CheckoutRefused
from orders.problem_types import PROBLEM_TYPES
from skincare.api import _IN_INDONESIAN
from tests.integration.orders.shop import METHOD, a_product

pytestmark = pytest.mark.django_db


def refused(client: Client, body: object, *, key: str = "k", language: str = "id") -> Any:
    headers = {"Accept-Language": language} | ({"Idempotency-Key": key} if key else {})
    response = client.post("/v1/checkout", body, content_type="application/json", headers=headers)
    assert response.status_code >= 400, response.content
    document = json.loads(response.content)
    document["language"] = response["Content-Language"]
    return document


def cart(**changes: Any) -> dict[str, Any]:
    items = [{"sku": a_product(stocked=2).sku, "quantity": 1}]
    return {"items": items, "email": "sari@example.com", "payment_method": METHOD, **changes}


@pytest.mark.parametrize(
    ("wanted", "language"),
    [
        ("", "en"),
        ("id", "id"),
        ("id-ID,id;q=0.9,en;q=0.8", "id"),
        ("en-GB, id;q=0.5", "en"),
        ("fr, id;q=0.3", "id"),
        ("fr", "en"),
        ("*", "en"),
        ("id;q=0, en", "en"),
        ("\x00;;q=,,,", "en"),
        ("x" * 5000, "en"),
    ],
)
def test_the_language_is_the_one_that_is_liked_best(
    client: Client, wanted: str, language: str
) -> None:
    problem = refused(client, cart(items=[]), language=wanted)

    assert problem["language"] == language
    assert (
        problem["title"] == {"en": "The cart is empty.", "id": "Keranjang masih kosong."}[language]
    )


def test_every_refusal_of_checkout_is_said_in_indonesian(client: Client) -> None:
    twin = a_product()
    items = [{"sku": twin.sku, "quantity": 1}]
    empty = a_product(stocked=0)
    bodies = {
        "missing-idempotency-key": (cart(), ""),
        "invalid-idempotency-key": (cart(), "kunci baru"),
        "empty-cart": (cart(items=[]), "k"),
        "too-many-lines": (cart(items=items * 51), "k"),
        "quantity-out-of-range": (cart(items=[{"sku": twin.sku, "quantity": 0}]), "k"),
        "duplicate-sku": (cart(items=items * 2), "k"),
        "unknown-sku": (cart(items=[{"sku": "NO-SUCH", "quantity": 1}]), "k"),
        "not-enough-stock": (cart(items=[{"sku": empty.sku, "quantity": 1}]), "k"),
        "invalid-email": (cart(email="sari"), "k"),
        "unknown-payment-method": (cart(payment_method="giro"), "k"),
    }
    client.post(
        "/v1/checkout",
        cart(),
        content_type="application/json",
        headers={"Idempotency-Key": "used"},
    )
    bodies["idempotency-key-reused"] = (cart(language="en"), "used")

    english_words = re.compile(r"\b(must|the|is|was|with|or|characters?|have|that|none)\b", re.I)
    for name, (body, key) in bodies.items():
        problem = refused(client, body, key=key)
        assert problem["type"].endswith(name)
        assert problem["title"] == PROBLEM_TYPES[name].title.in_indonesian
        [error] = problem["errors"]
        assert problem["detail"] == f"{error['field']}: {error['rule']}"
        assert not english_words.search(error["rule"]), error["rule"]
    kinds = {
        re.sub(r"(?<!^)(?=[A-Z])", "-", k.__name__).lower()
        for k in CheckoutRefused.__subclasses__()
    }
    assert set(bodies) | {"too-many-unpaid"} == kinds  # test_hoarding has what brings it about


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({"items": []}, "harus diisi"),
        ({"sku": 1}, "tidak dikenal"),
        ({"email": 7}, "harus berupa teks"),
        ({"items": {}}, "harus berupa daftar"),
        ({"items": [7]}, "harus berupa objek"),
        ({"items": [{"sku": "A-1", "quantity": "1"}]}, "harus bilangan bulat"),
        ({"items": [{"sku": "A-1", "quantity": 1.5}]}, "harus bilangan bulat"),
        ({"language": "fr"}, "harus salah satu dari: 'id' atau 'en'"),
        ([], "harus berupa objek"),
    ],
)
def test_the_rules_of_fields_are_said_in_indonesian(client: Client, body: Any, rule: str) -> None:
    problem = refused(client, body)

    rules = {error["rule"].replace(" or ", " atau ") for error in problem["errors"]}
    assert rule in rules
    assert rules <= {*_IN_INDONESIAN.values(), rule}


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        ("limit=0", "paling kecil 1"),
        ("limit=101", "paling besar 100"),
        ("limit=a", "harus bilangan bulat"),
        ("limit=" + "9" * 5000, "bilangan terlalu besar"),
        ("q=" + "x" * 201, "paling panjang 200 karakter"),
        ("category=shoes", "harus salah satu dari: 'cleanser'"),
    ],
)
def test_the_rules_of_queries_are_said_in_indonesian(client: Client, query: str, rule: str) -> None:
    response = client.get(f"/v1/products?{query}", headers={"Accept-Language": "id"})

    [error] = json.loads(response.content)["errors"]
    assert error["rule"].startswith(rule)


def test_no_caller_gets_another_ones_language_from_a_cache(client: Client) -> None:
    response = client.get("/v1/nothing", headers={"Accept-Language": "id"})

    assert "Accept-Language" in response["Vary"]
