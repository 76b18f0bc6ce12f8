"""Below /v1 every answer is JSON, and only the origins of the settings may read it in a browser."""

import json
from typing import Any

import pytest
from django.http import HttpRequest
from django.test import Client

from orders import api
from orders.problems import CONTENT_TYPE

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("get", "/v1/", 404, "not-found"),
        ("get", "/v1/nothing", 404, "not-found"),
        ("post", "/v1/products/", 404, "not-found"),
        ("get", "/v1/orders/", 404, "not-found"),
        ("get", "/v1/checkout", 405, "method-not-allowed"),
        ("delete", "/v1/products", 405, "method-not-allowed"),
        ("put", "/v1/webhooks/midtrans", 405, "method-not-allowed"),
    ],
)
@pytest.mark.parametrize("debug", [False, True])
def test_what_no_route_answers_is_a_problem_too(
    client: Client, settings: Any, method: str, path: str, status: int, kind: str, debug: bool
) -> None:
    settings.DEBUG = debug

    response = getattr(client, method)(path)

    assert (response.status_code, response["Content-Type"]) == (status, CONTENT_TYPE)
    assert json.loads(response.content)["type"] == f"urn:problem-type:skincare:{kind}"
    assert status != 405 or response["Allow"]


def test_a_crash_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(api, "search_products", crash)

    response = Client(raise_request_exception=False).get("/v1/products")

    assert (response.status_code, response["Content-Type"]) == (500, CONTENT_TYPE)
    assert b"ZeroDivision" not in response.content


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ("{", 400, "unreadable-body"),
        ("\xff", 400, "unreadable-body"),
        ('{"email": "' + "x" * 300_000 + '"}', 413, "body-too-large"),
    ],
)
def test_a_body_that_cannot_be_read_is_a_problem(
    client: Client, body: str, status: int, kind: str
) -> None:
    response = client.post(
        "/v1/checkout",
        body.encode("latin-1"),
        content_type="application/json",
        headers={"Idempotency-Key": "k"},
    )

    assert (response.status_code, response["Content-Type"]) == (status, CONTENT_TYPE)
    assert json.loads(response.content)["type"].endswith(kind)


def test_the_admin_keeps_its_pages(client: Client) -> None:
    assert client.get("/admin/nothing/")["Content-Type"].startswith("text/html")


ORIGIN = "https://www.shop.example"


def preflight(client: Client, path: str = "/v1/checkout") -> Any:
    return client.options(
        path,
        headers={
            "Origin": ORIGIN,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type,idempotency-key,authorization",
        },
    )


def test_without_a_setting_no_other_origin_reads_an_answer(client: Client) -> None:
    for response in (preflight(client), client.get("/v1/products", headers={"Origin": ORIGIN})):
        assert "Access-Control-Allow-Origin" not in response


def test_an_origin_of_the_settings_may_check_out(client: Client, settings: Any) -> None:
    settings.CORS_ALLOWED_ORIGINS = [ORIGIN]

    allowed = preflight(client)
    answered = client.get("/v1/nothing", headers={"Origin": ORIGIN})

    assert allowed["Access-Control-Allow-Origin"] == ORIGIN
    for header in ("idempotency-key", "authorization", "accept-language"):
        assert header in allowed["Access-Control-Allow-Headers"]
    assert answered["Access-Control-Allow-Origin"] == ORIGIN
    assert "Retry-After" in answered["Access-Control-Expose-Headers"]
    assert "Access-Control-Allow-Credentials" not in answered


def test_another_origin_and_the_admin_stay_closed(client: Client, settings: Any) -> None:
    settings.CORS_ALLOWED_ORIGINS = ["https://other.example"]
    assert "Access-Control-Allow-Origin" not in preflight(client)

    settings.CORS_ALLOWED_ORIGINS = [ORIGIN]
    assert "Access-Control-Allow-Origin" not in preflight(client, "/admin/login/")


def test_a_request_has_no_more_than_its_own_problem(client: Client) -> None:
    """An API's own problem passes through as it is."""
    response = client.get("/v1/orders/7")

    assert json.loads(response.content)["type"].endswith("invalid-request")
    assert isinstance(response.wsgi_request, HttpRequest)
