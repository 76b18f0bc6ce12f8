"""Whose order it is: a guest's, or that of the subject of a token of the shop's own login."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from django.test import Client

from orders.models import Order
from tests.integration.orders.shop import METHOD, a_product

pytestmark = pytest.mark.django_db

SECRET = "the login's secret of this test, 32 characters and more"
OLD_SECRET = "the secret before it, also of 32 characters and more"


@pytest.fixture(autouse=True)
def login(settings: Any) -> None:
    settings.BUYER_TOKEN_SECRETS = [SECRET, OLD_SECRET]


def token(secret: str = SECRET, algorithm: str = "HS256", **changes: Any) -> str:
    claims = {
        "sub": "buyer-7",
        "aud": "skincare-shop",
        "exp": datetime.now(UTC) + timedelta(minutes=5),
    } | changes
    return jwt.encode(
        {name: value for name, value in claims.items() if value is not None}, secret, algorithm
    )


def check_out(client: Client, authorization: str) -> Any:
    return client.post(
        "/v1/checkout",
        {
            "items": [{"sku": a_product().sku, "quantity": 1}],
            "email": "sari@example.com",
            "payment_method": METHOD,
        },
        content_type="application/json",
        headers={"Idempotency-Key": "k", "Authorization": authorization},
    )


@pytest.mark.parametrize("secret", [SECRET, OLD_SECRET])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_the_subject_of_a_token_is_the_buyer(client: Client, secret: str, scheme: str) -> None:
    assert check_out(client, f"{scheme} {token(secret)}").status_code == 201
    assert Order.objects.get().user_id == "buyer-7"


def test_another_scheme_is_not_ours(client: Client) -> None:
    assert check_out(client, "Basic c2hvcDpzaG9w").status_code == 201
    assert Order.objects.get().user_id == "guest"


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "not a token",
        token("somebody else's secret, of 32 characters and more"),
        token(exp=datetime.now(UTC) - timedelta(minutes=1)),
        token(exp=None),
        token(aud="another-shop"),
        token(aud=None),
        token(sub=None),
        token(sub=""),
        token(sub="x" * 129),
        token(sub="guest"),
        token(sub="a\nb"),
        token(OLD_SECRET, exp=datetime.now(UTC) - timedelta(minutes=1)),
        jwt.encode({"sub": "buyer-7", "aud": "skincare-shop", "exp": 9_999_999_999}, None, "none"),
        token(algorithm="HS384", secret=SECRET + SECRET),
    ],
)
def test_a_token_that_proves_nothing_is_refused(client: Client, wrong: str) -> None:
    response = check_out(client, f"Bearer {wrong}")

    assert response.status_code == 401
    assert json.loads(response.content)["type"] == "urn:problem-type:skincare:invalid-token"
    assert response["WWW-Authenticate"] == "Bearer"
    assert not wrong or wrong not in response.content.decode()
    assert not Order.objects.exists()


def test_without_a_secret_nobody_can_be_somebody(client: Client, settings: Any) -> None:
    settings.BUYER_TOKEN_SECRETS = []

    assert check_out(client, f"Bearer {token()}").status_code == 401
    assert check_out(client, "").status_code == 201
    assert Order.objects.get().user_id == "guest"
