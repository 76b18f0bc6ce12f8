"""Xendit: who is believed, and what each callback says in the normal form."""

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from payments.exceptions import InvalidSignature, Malformed
from payments.providers.base import GatewayNotification, GatewayRefund
from payments.providers.document import load_object
from payments.providers.xendit import Xendit
from payments.status import PaymentStatus
from tests.unit.payments.xendit_callbacks import (
    ORDER_ID,
    invoice,
    payment_v2,
    payment_v3,
    refund,
)

XENDIT = Xendit()


def parse(document: dict[str, Any]) -> GatewayNotification:
    notification = XENDIT.parse(load_object(json.dumps(document).encode()))
    assert notification is not None
    return notification


# -- Who is believed -------------------------------------------------------------------------------


def test_the_token_of_the_dashboard(settings: Any) -> None:
    settings.XENDIT_CALLBACK_TOKEN = "the-token"

    assert XENDIT.verify({"x-callback-token": "the-token"}, b'{"id": "1"}') == {"id": "1"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-callback-token": ""},
        {"x-callback-token": "the-toke"},
        {"x-callback-token": "the-token "},
        {"x-callback-token": "the-tök\udcffen"},
    ],
)
def test_another_token_is_forged(headers: dict[str, str], settings: Any) -> None:
    settings.XENDIT_CALLBACK_TOKEN = "the-token"

    with pytest.raises(InvalidSignature):
        XENDIT.verify(headers, b"not even JSON")


@pytest.mark.parametrize("headers", [{}, {"x-callback-token": ""}])
def test_nothing_is_believed_with_an_empty_token(headers: dict[str, str], settings: Any) -> None:
    settings.XENDIT_CALLBACK_TOKEN = ""

    with pytest.raises(InvalidSignature, match="XENDIT_CALLBACK_TOKEN is empty"):
        XENDIT.verify(headers, b"{}")


def test_a_proven_sender_can_still_send_nonsense(settings: Any) -> None:
    settings.XENDIT_CALLBACK_TOKEN = "the-token"

    with pytest.raises(Malformed):
        XENDIT.verify({"x-callback-token": "the-token"}, b"not JSON")


# -- What it says ----------------------------------------------------------------------------------


def test_a_paid_invoice_in_the_normal_form() -> None:
    assert parse(invoice("PAID")) == GatewayNotification(
        provider="xendit",
        identity="invoice:62f00ac409accd62c85673c4:PAID",
        transaction_id="62f00ac409accd62c85673c4",
        other_ids=("7a9e1f02-9d5e-4b6a-8a53-7f4d29f4b0c1",),
        order_reference=ORDER_ID,
        status=PaymentStatus.SETTLED,
        amount=Decimal(150000),
        currency="IDR",
        occurred_at=datetime.fromisoformat("2026-11-10T17:17:05.534+00:00"),
        channel="MANDIRI",
        payload={
            "id": "62f00ac409accd62c85673c4",
            "external_id": ORDER_ID,
            "status": "PAID",
            "amount": 150000,
            "paid_amount": 150000,
            "payment_id": "7a9e1f02-9d5e-4b6a-8a53-7f4d29f4b0c1",
            "currency": "IDR",
            "payment_method": "BANK_TRANSFER",
            "payment_channel": "MANDIRI",
            "bank_code": "MANDIRI",
            "created": "2026-11-10T17:15:20.761Z",
            "updated": "2026-11-10T17:17:05.843Z",
            "paid_at": "2026-11-10T17:17:05.534Z",
        },
    )


@pytest.mark.parametrize(
    ("document", "status"),
    [
        (invoice("PENDING"), PaymentStatus.PENDING),
        (invoice("PAID"), PaymentStatus.SETTLED),
        (invoice("SETTLED"), PaymentStatus.SETTLED),
        (invoice("EXPIRED"), PaymentStatus.EXPIRED),
        (payment_v3("payment.capture"), PaymentStatus.SETTLED),
        (payment_v3("payment.authorization", "AUTHORIZED"), PaymentStatus.AUTHORIZED),
        (payment_v3("payment.failure", "FAILED"), PaymentStatus.FAILED),
        (payment_v3("payment.expiry", "EXPIRED"), PaymentStatus.EXPIRED),
        (payment_v3("payment_request.expiry", "EXPIRED"), PaymentStatus.EXPIRED),
        (payment_v2("payment.succeeded"), PaymentStatus.SETTLED),
        (payment_v2("payment.awaiting_capture", "AWAITING_CAPTURE"), PaymentStatus.AUTHORIZED),
        (payment_v2("payment.pending", "PENDING"), PaymentStatus.PENDING),
        (payment_v2("payment.failed", "FAILED"), PaymentStatus.FAILED),
        (refund(), PaymentStatus.PARTLY_REFUNDED),
    ],
)
def test_the_status_without_doubt(document: dict[str, Any], status: PaymentStatus) -> None:
    notification = parse(document)

    assert (notification.status, notification.review_reason) == (status, "")


@pytest.mark.parametrize(
    ("document", "review_reason"),
    [
        (invoice("PAID", paid_amount=149000), "invoice of 150000 was paid with 149000"),
        (invoice("VANISHED"), "unknown invoice status VANISHED"),
        (payment_v3("payment.capture", "FAILED"), "payment.capture with status FAILED"),
        (payment_v2("payment.succeeded", "PENDING"), "payment.succeeded with status PENDING"),
        (refund(status="PENDING"), "refund.succeeded with status PENDING"),
    ],
)
def test_the_doubtful_goes_to_a_person(document: dict[str, Any], review_reason: str) -> None:
    assert parse(document).review_reason == review_reason


@pytest.mark.parametrize(
    ("document", "transaction_id", "other_ids"),
    [
        # A payment request can be paid twice, so its id is none of the payment's.
        (payment_v3(), "py-1402feb0-bb79-47ae-9d1e-e69394d3949c", ()),
        (payment_v2(), "ddpy-3cd658ae-25b9-4659-aa36-596ae41a809f", ()),
        (invoice(), "62f00ac409accd62c85673c4", ("7a9e1f02-9d5e-4b6a-8a53-7f4d29f4b0c1",)),
        (
            payment_v3("payment_request.expiry", "EXPIRED", payment_id=""),
            "pr-1102feb0-bb79-47ae-9d1e-e69394d3949c",
            (),
        ),
        (refund(invoice_id="inv-1"), "py-1402feb0-bb79-47ae-9d1e-e69394d3949c", ("inv-1",)),
        (refund(payment_id=None, invoice_id="inv-1"), "inv-1", ()),
    ],
)
def test_the_ids_of_the_transaction(
    document: dict[str, Any], transaction_id: str, other_ids: tuple[str, ...]
) -> None:
    notification = parse(document)

    assert (notification.transaction_id, notification.other_ids) == (transaction_id, other_ids)


def test_captures_add_up() -> None:
    parts = [{"capture_id": "c1", "capture_amount": 100000.5}, {"capture_amount": 49999.5}]

    assert parse(payment_v3(captures=parts)).amount == Decimal(150000)


def test_a_decimal_amount_is_read_exactly() -> None:
    body = json.dumps(invoice("EXPIRED", amount=0)).replace('"amount": 0', '"amount": 150000.10')

    notification = XENDIT.parse(load_object(body.encode()))

    assert notification is not None
    assert notification.amount == Decimal("150000.10")


def test_a_refund_names_its_own_amount_only() -> None:
    notification = parse(refund(amount=50000))

    assert notification.amount is None
    assert notification.order_reference == ""
    assert notification.refunds == (
        GatewayRefund(
            key="rfd-6f4a377d-a201-437f-9119-f8b00cbbe857",
            amount=Decimal(50000),
            kind="refund",
            refunded_at=datetime.fromisoformat("2026-11-12T09:12:35.001+00:00"),
        ),
    )


def test_a_refund_that_is_wrapped_twice_as_in_the_documentation() -> None:
    once = refund()

    assert parse({**once, "data": once}) == parse(once)


@pytest.mark.parametrize(
    "event", ["refund.failed", "payment_token.activation", "payout.succeeded", "payment_method.x"]
)
def test_other_events_tell_nothing_of_a_payment(event: str) -> None:
    assert XENDIT.parse({"event": event, "data": {}}) is None


@pytest.mark.parametrize("event", ["unheard.of", "payment_request.succeeded", "payment.unheard"])
def test_an_event_that_nobody_knows_is_a_persons_case(event: str) -> None:
    with pytest.raises(Malformed, match="is not one that we know"):
        XENDIT.parse({"event": event, "data": {}})


def test_a_missing_currency_is_rupiah() -> None:
    assert parse(invoice(currency=None)).currency == "IDR"


@pytest.mark.parametrize("paid_at", [None, "9999-12-31T23:59:59Z", "0001-01-01", "soon", 5])
def test_a_time_that_cannot_be_is_when_it_came(paid_at: Any) -> None:
    before = timezone.now()
    found = parse(invoice(paid_at=paid_at, updated=paid_at, created=paid_at)).occurred_at

    assert before <= found <= timezone.now()


OLDER = {
    "ewallet": {
        "event": "ewallet.capture",
        "created": "2026-11-11T00:17:05Z",
        "data": {
            "id": "ewc_1",
            "reference_id": "order-1",
            "status": "SUCCEEDED",
            "currency": "IDR",
            "charge_amount": 150000,
            "capture_amount": 150000,
            "channel_code": "ID_OVO",
        },
    },
    "qr, flat": {
        "event": "qr.payment",
        "id": "qrpy_1",
        "amount": 150000,
        "created": "2026-11-11T00:17:05Z",
        "qr_code": {"id": "qr_1", "external_id": "order-1", "type": "DYNAMIC"},
        "status": "COMPLETED",
    },
    "qr, nested": {
        "event": "qr.payment",
        "created": "2026-11-11T00:17:05Z",
        "data": {
            "id": "qrpy_1",
            "qr_id": "qr_1",
            "reference_id": "order-1",
            "amount": 150000,
            "currency": "IDR",
            "status": "SUCCEEDED",
            "channel_code": "ID_DANA",
        },
    },
    "virtual account": {
        "id": "58a4",
        "payment_id": "1487156512722",
        "callback_virtual_account_id": "58a4",
        "external_id": "order-1",
        "account_number": "1001470126",
        "bank_code": "MANDIRI",
        "amount": 150000,
        "transaction_timestamp": "2026-11-11T00:17:05.000Z",
    },
    "session": {
        "event": "payment_session.completed",
        "created": "2026-11-11T00:17:05Z",
        "data": {
            "payment_session_id": "ps-1",
            "reference_id": "order-1",
            "status": "COMPLETED",
            "amount": 150000,
            "currency": "IDR",
            "payment_id": "py-1",
        },
    },
}


@pytest.mark.parametrize("document", OLDER.values(), ids=list(OLDER))
def test_money_in_the_shapes_of_other_products(document: dict[str, Any]) -> None:
    found = parse(document)

    assert (found.status, found.order_reference) == (PaymentStatus.SETTLED, "order-1")
    assert (found.amount, found.currency, found.review_reason) == (150000, "IDR", "")
    assert found.occurred_at.isoformat() == "2026-11-11T00:17:05+00:00"


@pytest.mark.parametrize("reference", ["invoice_123124123", "fixed-va-1487156410"])
def test_the_dashboards_test_button_is_recognised(reference: str) -> None:
    assert parse(invoice(external_id=reference)).is_test


def test_repeats_have_one_identity_and_others_another() -> None:
    documents = [
        invoice("PAID"),
        invoice("SETTLED"),
        invoice("PAID", invoice_id="another"),
        payment_v3("payment.authorization", "AUTHORIZED"),
        payment_v3("payment.capture"),
        payment_v2("payment.succeeded"),
        refund(),
        refund(refund_id="another"),
    ]
    identities = [parse(document).identity for document in documents]

    assert len(set(identities)) == len(documents)
    assert identities == [parse(document).identity for document in documents]


@pytest.mark.parametrize("document", [invoice(), payment_v2(), payment_v3(), refund()])
def test_no_secret_card_or_customer_data_is_kept(document: dict[str, Any]) -> None:
    kept = json.dumps(dict(parse(document).payload))

    for secret in (
        "sari@example.com",
        "Sari",
        "8860861087714",
        "400000XXXXXX1091",
        "831000",
        "cust-",
        "skincare.example",
    ):
        assert secret not in kept


@pytest.mark.parametrize(
    ("document", "refusal"),
    [
        (
            invoice(amount="a lot"),
            'amount: must be a decimal number in a string, like "10000.00"',
        ),
        (invoice(amount=True), "amount: must be a JSON number"),
        (invoice(amount=-1), "amount: must be 0 to 1000000000000000"),
        (invoice(external_id=None), "external_id: is missing or empty"),
        (invoice(id=5), "id: must be a JSON string"),
        ({"event": "payment.capture"}, "data: must be a JSON object"),
        ({"event": 5}, "event: must be a JSON string"),
        (payment_v3(captures=[5]), "captures: must be a list of JSON objects"),
        (refund(payment_id=None), "payment_id: is missing or empty"),
    ],
)
def test_what_is_malformed(document: dict[str, Any], refusal: str) -> None:
    with pytest.raises(Malformed) as raised:
        parse(document)

    assert str(raised.value) == refusal


@pytest.mark.parametrize(
    ("changes", "is_timed"),
    [
        ({}, True),
        ({"paid_at": None}, True),
        ({"paid_at": None, "updated": None, "created": None}, False),
        # A time that is not read does not make ours the gateway's.
        (
            {
                "paid_at": None,
                "updated": None,
                "created": None,
                "created_at": "2026-11-10T17:15:20Z",
            },
            False,
        ),
    ],
)
def test_a_time_is_the_gateways_only_where_it_says_that_one(
    changes: dict[str, Any], is_timed: bool
) -> None:
    assert parse(invoice(**changes)).is_timed is is_timed
