"""A sender with the right secret who fills each field with anything is answered, never 5xx."""

import hashlib
import json
from collections import Counter
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from tests.attack.values import VALUES, some
from tests.unit.payments import midtrans_notifications, xendit_callbacks

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.timeout(600)]


def signed(document: dict[str, Any]) -> bytes:
    """Midtrans's signature over whatever the fields hold."""
    text = "".join(
        str(document.get(name, "")) for name in ("order_id", "status_code", "gross_amount")
    )
    key = (text + settings.MIDTRANS_SERVER_KEY).encode(errors="surrogatepass")
    return json.dumps({**document, "signature_key": hashlib.sha512(key).hexdigest()}).encode()


@pytest.mark.parametrize("example", ["bank_transfer", "card"])
def test_every_field_of_a_midtrans_notification(example: str) -> None:
    whole: dict[str, Any] = getattr(midtrans_notifications, example)()
    statuses: Counter[int] = Counter()
    fields = [*whole, "fraud_status", "refunds", "settlement_time", "unknown"]
    for turn, field in enumerate(fields):
        for value in some(VALUES, turn=turn):
            answer = Client(raise_request_exception=False).post(
                "/v1/webhooks/midtrans", signed({**whole, field: value}), "application/json"
            )
            assert answer.status_code < 500, (field, value, answer.content)
            statuses[answer.status_code] += 1
    assert set(statuses) <= {200, 400, 403}


@pytest.mark.parametrize("example", ["invoice", "payment_v3", "payment_v2", "refund"])
def test_every_field_of_a_xendit_callback(example: str) -> None:
    whole: dict[str, Any] = getattr(xendit_callbacks, example)()
    inner = whole.get("data") if isinstance(whole.get("data"), dict) else {}
    changed = [
        {**whole, field: value}
        for turn, field in enumerate([*whole, "unknown"])
        for value in some(VALUES, turn=turn)
    ]
    changed += [
        {**whole, "data": {**inner, field: value}}
        for turn, field in enumerate(inner or {})
        for value in some(VALUES, turn=turn)
    ]
    for document in changed:
        answer = Client(raise_request_exception=False).post(
            "/v1/webhooks/xendit",
            json.dumps(document),
            "application/json",
            headers={"x-callback-token": settings.XENDIT_CALLBACK_TOKEN},
        )
        assert answer.status_code in (200, 400, 403), (document, answer.content)


@pytest.mark.parametrize("gateway", ["midtrans", "xendit"])
def test_bodies_that_are_no_notification(gateway: str) -> None:
    bodies = [json.dumps(value).encode() for value in VALUES]
    bodies += [b"", b"{", b"\xff\xfe", b"[" * 5_000, b'{"a":' * 5_000, b"\x00", b'{"a":1,"a":2}']
    for body in bodies:
        answer = Client(raise_request_exception=False).post(
            f"/v1/webhooks/{gateway}",
            body,
            "application/json",
            headers={"x-callback-token": settings.XENDIT_CALLBACK_TOKEN},
        )
        assert answer.status_code < 500, (body[:80], answer.content)
