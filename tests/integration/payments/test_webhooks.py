"""What the gateways get as an answer, and what is stored then."""

import json
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from structlog.testing import capture_logs

from payments.models import Payment, PaymentNotification
from skincare.events.models import OutboxEvent
from tests.integration.payments.gateways import (
    an_order,
    midtrans_posts,
    published,
    the_payment,
    told,
    xendit_posts,
)
from tests.unit.payments import midtrans_notifications as midtrans
from tests.unit.payments import xendit_callbacks as xendit

pytestmark = pytest.mark.django_db
UNKNOWN_ORDER = "5c9f2f0e-2d61-4c9b-8f0a-2b7a52b6a111"


def test_a_settlement_is_stored_applied_and_told() -> None:
    order = an_order()

    response = midtrans_posts(midtrans.bank_transfer(order_id=str(order.pk)))

    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    payment = the_payment(order)
    assert (payment.status, payment.transaction_id) == ("settled", midtrans.TRANSACTION_ID)
    assert payment.paid_at is not None
    assert payment.paid_at.isoformat() == "2026-11-10T17:17:05+00:00"
    notification = PaymentNotification.objects.get()
    assert (notification.outcome, notification.payment) == ("applied", payment)
    [event] = published(order)
    assert event.payload == {
        "request_id": response["X-Request-ID"],
        "event_id": event.event_id,
        "event_type": "payment.processed",
        "order_id": str(order.pk),
        "payment_id": str(payment.pk),
        "user_id": "guest",
        "amount_rupiah": 150000,
        "created_at": "2026-11-11T00:17:05+07:00",
    }


def test_a_repeat_is_answered_alike_and_changes_nothing() -> None:
    order = an_order()
    document = midtrans.bank_transfer(order_id=str(order.pk))
    midtrans_posts(document)
    before = the_payment(order)

    with capture_logs() as logs:
        statuses = [midtrans_posts(document).status_code for _ in range(4)]

    assert statuses == [200] * 4
    assert PaymentNotification.objects.count() == 1
    assert told(order) == [("payment.processed", 150000)]
    assert the_payment(order).updated_at == before.updated_at
    assert [line["repeat"] for line in logs if line["event"] == "notification_received"] == [
        True
    ] * 4


@pytest.mark.parametrize(
    "document",
    [
        xendit.invoice("PAID", external_id=""),
        xendit.payment_v3("payment.capture"),
        xendit.payment_v2("payment.succeeded"),
    ],
    ids=["invoice", "v3", "v2"],
)
def test_a_xendit_payment_is_stored_applied_and_told(document: dict[str, Any]) -> None:
    order = an_order("xendit")
    if "data" in document:
        document["data"]["reference_id"] = str(order.pk)
    else:
        document["external_id"] = str(order.pk)

    statuses = [xendit_posts(document).status_code for _ in range(2)]

    assert statuses == [200, 200]
    assert the_payment(order).status == "settled"
    assert told(order) == [("payment.processed", 150000)]


@pytest.mark.parametrize("key", ["", "SB-Mid-server-of-someone-else"])
def test_a_forged_midtrans_notification_stores_nothing_but_a_log_line(key: str) -> None:
    order = an_order()
    document = midtrans.bank_transfer(order_id=str(order.pk))

    with capture_logs() as logs:
        response = Client().post(
            "/v1/webhooks/midtrans",
            data=midtrans.body(document, server_key=key),
            content_type="application/json",
        )

    assert response.status_code == 403
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["type"] == "urn:problem-type:skincare:webhook-forged"
    assert PaymentNotification.objects.count() == 0
    assert the_payment(order).status == "pending"
    assert told(order) == []
    [line] = [line for line in logs if line["event"] == "webhook_refused"]
    assert (line["provider"], line["refusal"]) == ("midtrans", "forged")


@pytest.mark.parametrize("headers", [{}, {"x-callback-token": "another"}])
def test_a_forged_xendit_callback_stores_nothing_but_a_log_line(headers: dict[str, str]) -> None:
    order = an_order("xendit")

    with capture_logs() as logs:
        response = Client().post(
            "/v1/webhooks/xendit",
            data=json.dumps(xendit.invoice(external_id=str(order.pk))),
            content_type="application/json",
            headers=headers,
        )

    assert response.status_code == 403
    assert PaymentNotification.objects.count() == 0
    assert the_payment(order).status == "pending"
    [line] = [line for line in logs if line["event"] == "webhook_refused"]
    assert (line["provider"], line["refusal"]) == ("xendit", "forged")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"amount": NaN}', b"[" * 50_000])
def test_what_is_not_json_stores_nothing_but_a_log_line(body: bytes) -> None:
    with capture_logs() as logs:
        response = Client().post(
            "/v1/webhooks/xendit",
            data=body,
            content_type="application/json",
            headers={"x-callback-token": settings.XENDIT_CALLBACK_TOKEN},
        )

    assert response.status_code == 400
    assert response.json()["type"] == "urn:problem-type:skincare:webhook-malformed"
    assert PaymentNotification.objects.count() == 0
    [line] = [line for line in logs if line["event"] == "webhook_refused"]
    assert line["refusal"] == "malformed"


def test_a_body_over_the_limit_is_refused_unread() -> None:
    response = Client().post(
        "/v1/webhooks/midtrans",
        data=b" " * (settings.WEBHOOK_MAX_BYTES + 1),
        content_type="application/json",
    )

    assert response.status_code == 413
    assert response.json()["type"] == "urn:problem-type:skincare:webhook-too-large"


def test_only_post() -> None:
    assert Client().get("/v1/webhooks/midtrans").status_code == 405


def test_the_event_of_another_product_is_stored_and_changes_nothing() -> None:
    assert xendit_posts({"event": "payout.succeeded", "data": {}}).status_code == 200
    stored = PaymentNotification.objects.get()
    assert (stored.outcome, stored.reason) == ("ignored", "another product's event")


@pytest.mark.parametrize("reference", [UNKNOWN_ORDER, "TEST-123", UNKNOWN_ORDER.upper()])
def test_an_unknown_order_is_stored_and_answered_200(reference: str) -> None:
    document = midtrans.bank_transfer(order_id=reference)

    responses = [midtrans_posts(document) for _ in range(2)]

    assert [response.status_code for response in responses] == [200, 200]
    notification = PaymentNotification.objects.get()
    assert (notification.outcome, notification.payment) == ("unmatched", None)
    assert Payment.objects.count() == 0
    assert OutboxEvent.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_without_a_database_the_gateway_calls_again(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "PORT", "1")
    monkeypatch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
    try:
        with capture_logs() as logs:
            response = midtrans_posts(midtrans.bank_transfer())
    finally:
        monkeypatch.undo()
        connection.close()

    assert response.status_code == 503
    assert response["Retry-After"] == "60"
    assert response.json()["type"] == "urn:problem-type:skincare:webhook-not-stored"
    assert [line["event"] for line in logs] == ["notification_not_stored"]
    assert PaymentNotification.objects.count() == 0


def test_no_secret_reaches_the_database_or_the_log() -> None:
    order = an_order()
    document = midtrans.card(order_id=str(order.pk))

    with capture_logs() as logs:
        midtrans_posts(document)

    stored = json.dumps(PaymentNotification.objects.get().payload) + str(logs)
    for secret in ("signature_key", "48111111-1114", "1578569243927", settings.MIDTRANS_SERVER_KEY):
        assert secret not in stored
