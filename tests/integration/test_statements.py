"""How many statements each path sends to PostgreSQL, its BEGIN and COMMIT included.

Each is a round trip, and most of them are a while that a lock is held. A number here may go down;
where it has to go up, something else should become one statement.
"""

import json
from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orders import catalogue

pytestmark = pytest.mark.django_db(transaction=True)

CHECKOUT = 9


def statements(action: Callable[[], object]) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        action()
    return [query["sql"] for query in captured]


def check_out(client: Client, *, method: str = "midtrans") -> dict[str, str]:
    answer = client.post(
        "/v1/checkout",
        json.dumps(
            {
                "items": [
                    {"sku": "CLN-GEL-100", "quantity": 1},
                    {"sku": "CLN-OIL-150", "quantity": 2},
                ],
                "email": "buyer@mail.example",
                "payment_method": method,
            }
        ),
        content_type="application/json",
        headers={"Idempotency-Key": uuid4().hex},
    )
    assert answer.status_code == 201, answer.content
    placed: dict[str, str] = answer.json()
    return placed


def test_a_checkout_takes_nine_statements(client: Client) -> None:
    catalogue.seed()
    check_out(client)

    sent = statements(lambda: check_out(client))

    assert len(sent) <= CHECKOUT, "\n".join(sent)
