"""The ways to pay as a buyer reads them."""

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db


def test_ways_to_pay_are_named_in_the_language_asked_for(client: Client) -> None:
    labels = {}
    for language in ("en", "id-ID"):
        answer = client.get("/v1/payment-methods", headers={"Accept-Language": language})
        labels[language] = {one["name"]: one["label"] for one in answer.json()["items"]}

    assert labels["en"]["sandbox"] == "Paid at once (for tests)"
    assert labels["id-ID"]["sandbox"] == "Langsung lunas (untuk percobaan)"
