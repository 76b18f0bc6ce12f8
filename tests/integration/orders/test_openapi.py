"""The OpenAPI document: an example of everything that is sent, and each of them true."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from orders import catalogue
from orders.problem_types import PROBLEM_TYPES
from orders.problems import CONTENT_TYPE
from skincare.api import api
from skincare.api_examples import ANSWERS, REQUESTS
from tests.integration.orders.shop import METHOD

TOOLS = Path(__file__).parent / "openapi"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return json.loads(json.dumps(api.get_openapi_schema(path_prefix="/v1"), default=str))


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method.upper()} {path.removeprefix('/v1')}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_everything_that_is_sent_has_an_example(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        if "requestBody" in operation:
            assert operation["requestBody"]["content"]["application/json"]["example"], name
        for parameter in operation.get("parameters", []):
            assert "example" in parameter, (name, parameter["name"])
        for status, answer in operation["responses"].items():
            [(kind, content)] = answer["content"].items()
            if int(status) < 400:
                assert content["example"], name
            else:
                assert kind == CONTENT_TYPE
                assert content["examples"], (name, status)


def test_every_kind_of_problem_that_a_route_has_is_shown_under_its_status(
    document: dict[str, Any],
) -> None:
    for name, operation in operations(document):
        for status, answer in operation["responses"].items():
            for kind, example in (
                answer["content"].get(CONTENT_TYPE, {}).get("examples", {}).items()
            ):
                assert PROBLEM_TYPES[kind].status == int(status), name
                assert example["value"]["status"] == int(status)


def shape(value: Any) -> Any:
    """Names and types of a JSON value; of a list, those of its first item."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return None if value is None else type(value).__name__


@pytest.mark.django_db
def test_the_examples_are_a_purchase_that_the_shop_takes(client: Client) -> None:
    catalogue.seed()

    bought = client.post(
        "/v1/checkout",
        REQUESTS["POST /checkout"] | {"payment_method": METHOD},
        content_type="application/json",
        headers={"Idempotency-Key": "k"},
    )

    assert bought.status_code == 201, bought.content
    assert bought.json()["total_rupiah"] == ANSWERS["POST /checkout"]["total_rupiah"]
    seen = {
        "POST /checkout": bought,
        "GET /orders/{order_id}": client.get(bought["Location"]),
        "POST /orders/{order_id}/cancel": client.post(f"{bought['Location']}/cancel"),
        "GET /products": client.get("/v1/products?q=serum vitamin"),
        "GET /products/{sku}": client.get("/v1/products/SRM-VITC-30"),
        "GET /categories": client.get("/v1/categories"),
        "GET /payment-methods": client.get("/v1/payment-methods"),
        "GET /problems": client.get("/v1/problems"),
    }
    for name, response in seen.items():
        real, shown = shape(response.json()), shape(ANSWERS[name])
        # The test's way to pay opens no payment.
        for part in ("paid_at", "shipped_at", "payments", "pay_until"):
            real.pop(part, None), shown.pop(part, None)
        assert real == shown, name
    webhooks = {name for name in ANSWERS if "webhooks" in name}
    pays = {"POST /orders/{order_id}/payments"}  # tests/integration/payments/test_paying.py
    assert set(ANSWERS) == set(seen) | webhooks | pays


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_client_is_generated_from_it_and_compiles(
    document: dict[str, Any], tmp_path: Path
) -> None:
    """openapi-typescript makes the types, and TypeScript compiles a client that uses them."""
    for file in TOOLS.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "openapi.json").write_text(json.dumps(document))

    for command in (
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        ["npx", "--no-install", "openapi-typescript", "openapi.json", "--output", "shop.d.ts"],
        ["npx", "--no-install", "tsc", "--noEmit", "--strict", "client.ts", "shop.d.ts"],
    ):
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
