"""Midtrans: who is believed, and what each notification says in the normal form."""

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from payments.exceptions import InvalidSignature, Malformed
from payments.providers.base import GatewayNotification, GatewayRefund
from payments.providers.midtrans import Midtrans
from payments.status import PaymentStatus
from tests.unit.payments.midtrans_notifications import (
    ORDER_ID,
    TRANSACTION_ID,
    bank_transfer,
    body,
    card,
    refunded,
)

MIDTRANS = Midtrans()


def parse(document: dict[str, Any]) -> GatewayNotification:
    notification = MIDTRANS.parse(MIDTRANS.verify({}, body(document)))
    assert notification is not None
    return notification


# -- Who is believed -------------------------------------------------------------------------------


def test_the_documented_signature() -> None:
    """SHA-512 of order_id + status_code + gross_amount + ServerKey, in that order."""
    document = {"order_id": "o", "status_code": "2", "gross_amount": "1"}

    assert MIDTRANS.verify({}, body(document))["order_id"] == "o"


@pytest.mark.parametrize(
    "change",
    [
        {"order_id": "another"},
        {"status_code": "201"},
        {"gross_amount": "150000.0"},
        {"gross_amount": "150000"},
        {"signature_key": ""},
        {"signature_key": None},
        {"signature_key": 5},
        {"signature_key": "\ud800"},
    ],
)
def test_a_changed_notification_is_forged(change: dict[str, Any]) -> None:
    signed = json.loads(body(bank_transfer()))

    with pytest.raises(InvalidSignature):
        MIDTRANS.verify({}, json.dumps({**signed, **change}).encode())


def test_an_upper_case_signature_is_forged() -> None:
    signed = json.loads(body(bank_transfer()))
    signed["signature_key"] = signed["signature_key"].upper()

    with pytest.raises(InvalidSignature):
        MIDTRANS.verify({}, json.dumps(signed).encode())


def test_a_missing_signature_is_forged() -> None:
    with pytest.raises(InvalidSignature):
        MIDTRANS.verify({}, json.dumps(bank_transfer()).encode())


def test_a_signature_with_another_key_is_forged() -> None:
    with pytest.raises(InvalidSignature):
        MIDTRANS.verify({}, body(bank_transfer(), server_key="SB-Mid-server-another"))


def test_nothing_is_believed_with_an_empty_server_key(settings: Any) -> None:
    settings.MIDTRANS_SERVER_KEY = ""

    with pytest.raises(InvalidSignature, match="MIDTRANS_SERVER_KEY is empty"):
        MIDTRANS.verify({}, body(bank_transfer(), server_key=""))


@pytest.mark.parametrize("field", ["order_id", "status_code", "gross_amount"])
def test_signed_fields_must_be_strings(field: str) -> None:
    with pytest.raises(Malformed) as refusal:
        MIDTRANS.verify({}, json.dumps({**bank_transfer(), field: 200}).encode())

    assert str(refusal.value) == f"{field}: must be a JSON string"


# -- What it says ----------------------------------------------------------------------------------


def test_a_settlement_in_the_normal_form() -> None:
    assert parse(bank_transfer("settlement")) == GatewayNotification(
        provider="midtrans",
        identity=f"{TRANSACTION_ID}:settlement:200:accept",
        transaction_id=TRANSACTION_ID,
        order_reference=ORDER_ID,
        status=PaymentStatus.SETTLED,
        amount=Decimal("150000.00"),
        currency="IDR",
        occurred_at=datetime.fromisoformat("2026-11-11T00:17:05+07:00"),
        channel="bank_transfer",
        expires_at=datetime.fromisoformat("2026-11-12T00:15:20+07:00"),
        came_in_at=datetime.fromisoformat("2026-11-11T00:17:05+07:00"),
        payload={
            "transaction_time": "2026-11-11 00:15:20",
            "transaction_status": "settlement",
            "transaction_id": TRANSACTION_ID,
            "status_message": "midtrans payment notification",
            "status_code": "200",
            "settlement_time": "2026-11-11 00:17:05",
            "expiry_time": "2026-11-12 00:15:20",
            "payment_type": "bank_transfer",
            "order_id": ORDER_ID,
            "merchant_id": "G141532850",
            "gross_amount": "150000.00",
            "fraud_status": "accept",
            "currency": "IDR",
        },
    )


@pytest.mark.parametrize(
    ("document", "status"),
    [
        (bank_transfer("pending"), PaymentStatus.PENDING),
        (bank_transfer("settlement"), PaymentStatus.SETTLED),
        (bank_transfer("expire"), PaymentStatus.EXPIRED),
        (bank_transfer("cancel"), PaymentStatus.CANCELLED),
        (bank_transfer("deny"), PaymentStatus.DENIED),
        (bank_transfer("failure"), PaymentStatus.FAILED),
        (card("authorize"), PaymentStatus.AUTHORIZED),
        (card("authorize", fraud_status="challenge"), PaymentStatus.CHALLENGED),
        (card("capture"), PaymentStatus.CAPTURED),
        (card("capture", fraud_status="challenge"), PaymentStatus.CHALLENGED),
        (card("capture", fraud_status="deny", status_code="202"), PaymentStatus.DENIED),
        (card("deny", fraud_status="deny", status_code="202"), PaymentStatus.DENIED),
        (card("settlement"), PaymentStatus.SETTLED),
        (card("cancel"), PaymentStatus.CANCELLED),
        (card("refund"), PaymentStatus.REFUNDED),
        (card("chargeback"), PaymentStatus.REFUNDED),
        (refunded(("r1", "50000.00")), PaymentStatus.PARTLY_REFUNDED),
        (
            refunded(("c1", "50000.00"), transaction_status="partial_chargeback"),
            PaymentStatus.PARTLY_REFUNDED,
        ),
    ],
)
def test_the_status_without_doubt(document: dict[str, Any], status: PaymentStatus) -> None:
    notification = parse(document)

    assert (notification.status, notification.review_reason) == (status, "")


@pytest.mark.parametrize(
    ("document", "review_reason"),
    [
        # transaction_status and fraud_status are not signed: a pending notification whose word was
        # changed keeps its status code.
        (bank_transfer("settlement", status_code="201"), "settlement with status_code 201"),
        (card("capture", status_code="201"), "capture with status_code 201"),
        (card("capture", fraud_status="unheard"), "capture with fraud_status unheard"),
        (card("refund", status_code="412"), "refund with status_code 412"),
        (bank_transfer("vanished"), "unknown transaction_status vanished"),
        (card("partial_refund"), "partial_refund without an amount"),
        (card("partial_refund", refund_amount="5.00"), "partial_refund without an amount"),
        (card("partial_chargeback"), "partial_chargeback without an amount"),
    ],
)
def test_the_doubtful_goes_to_a_person(document: dict[str, Any], review_reason: str) -> None:
    assert parse(document).review_reason == review_reason


def test_a_capture_without_fraud_status_is_doubtful() -> None:
    document = card("capture")
    del document["fraud_status"]

    assert parse(document).review_reason == "capture with fraud_status missing"


def test_refunds_keep_their_own_keys_amounts_and_times() -> None:
    notification = parse(refunded(("r1", "50000.00"), ("r2", "25000.00")))

    assert notification.refunds == (
        GatewayRefund(
            key="r1",
            amount=Decimal("50000.00"),
            kind="refund",
            refunded_at=datetime.fromisoformat("2026-11-12T11:16:16+07:00"),
        ),
        GatewayRefund(
            key="r2",
            amount=Decimal("25000.00"),
            kind="refund",
            refunded_at=datetime.fromisoformat("2026-11-13T11:16:16+07:00"),
        ),
    )


def test_a_refund_that_is_named_beside_the_list() -> None:
    document = card("partial_refund", refund_key="reference1", refund_amount="5000.00")

    assert [(one.key, one.amount) for one in parse(document).refunds] == [
        ("reference1", Decimal("5000.00"))
    ]


@pytest.mark.parametrize(("word", "kind"), [("refund", "refund"), ("chargeback", "chargeback")])
def test_a_full_refund_without_amounts_is_all_that_is_left(word: str, kind: str) -> None:
    [one] = parse(card(word)).refunds

    assert (one.key, one.amount, one.kind) == (word, None, kind)


def test_a_refund_without_a_key_goes_by_its_number() -> None:
    document = refunded(("r1", "50000.00"))
    document["refunds"][0] |= {"refund_key": None, "refund_chargeback_uuid": None}

    assert [one.key for one in parse(document).refunds] == ["refund_chargeback_id-1"]


@pytest.mark.parametrize(
    "refunds", ["text", [1], [{}], [{"refund_key": "r1"}], [{"refund_amount": "1.00"}], {"a": 1}]
)
def test_malformed_refunds(refunds: Any) -> None:
    with pytest.raises(Malformed):
        parse(card("partial_refund", refunds=refunds))


def test_repeats_have_one_identity_and_others_another() -> None:
    documents = [
        bank_transfer("pending"),
        bank_transfer("settlement"),
        bank_transfer("settlement", transaction_id="another"),
        card("capture", fraud_status="challenge"),
        card("capture", fraud_status="accept"),
        refunded(("r1", "50000.00")),
        refunded(("r1", "50000.00"), ("r2", "25000.00")),
        refunded(("r1", "75000.00"), ("r2", "75000.00"), transaction_status="refund"),
        card("partial_refund"),
        card("partial_refund", refund_amount="50000.00"),
        card("partial_refund", refund_amount="75000.00"),
    ]
    identities = [parse(document).identity for document in documents]

    assert len(set(identities)) == len(documents)
    assert identities == [parse(document).identity for document in documents]


def test_the_banks_confirmation_of_a_refund_is_a_repeat() -> None:
    """Midtrans tells a refund again when the bank confirms it; nothing else differs."""
    confirmed = refunded(("r1", "50000.00"))
    unconfirmed = refunded(("r1", "50000.00"))
    del unconfirmed["refunds"][0]["bank_confirmed_at"]

    assert parse(confirmed).identity == parse(unconfirmed).identity


def test_no_identity_is_longer_than_its_column() -> None:
    document = card("x" * 24, fraud_status="y" * 16, transaction_id="t" * 128, status_code="9" * 8)

    assert len(parse(document).identity) <= 255


@pytest.mark.parametrize("document", [card("capture"), bank_transfer(), refunded(("r1", "1.00"))])
def test_no_secret_card_or_customer_data_is_kept(document: dict[str, Any]) -> None:
    kept = json.dumps(dict(parse(document).payload))

    for secret in (
        "signature_key",
        "48111111-1114",
        "1578569243927",
        "333333333333",
        "sari@example.com",
        "Sari",
        "the buyer asked",
    ):
        assert secret not in kept


def test_a_field_that_midtrans_adds_later_changes_nothing() -> None:
    assert parse(bank_transfer(new_thing={"a": [1]})) == parse(bank_transfer())


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"transaction_id": None}, "transaction_id: is missing or empty"),
        ({"transaction_id": ""}, "transaction_id: is missing or empty"),
        ({"transaction_id": 7}, "transaction_id: must be a JSON string"),
        ({"transaction_id": "t" * 129}, "transaction_id: must be at most 128 characters"),
        (
            {"transaction_id": "a\x00"},
            "transaction_id: must not hold a NUL or a lone surrogate",
        ),
        ({"transaction_status": None}, "transaction_status: is missing or empty"),
        (
            {"gross_amount": "ten"},
            'gross_amount: must be a decimal number in a string, like "10000.00"',
        ),
        ({"fraud_status": True}, "fraud_status: must be a JSON string"),
    ],
)
def test_what_is_malformed(change: dict[str, Any], refusal: str) -> None:
    with pytest.raises(Malformed) as raised:
        parse({**bank_transfer("pending"), **change})

    assert str(raised.value) == refusal


# -- What is odd, and still read -------------------------------------------------------------------


@pytest.mark.parametrize(
    "time",
    ["2026-11-11 00:17:05.123", "2026-11-11T00:17:05+07:00", "2026-11-10T17:17:05Z"],
)
def test_a_time_in_another_spelling_is_read(time: str) -> None:
    found = parse(bank_transfer(settlement_time=time)).occurred_at

    assert found.replace(microsecond=0) == datetime.fromisoformat("2026-11-11T00:17:05+07:00")


@pytest.mark.parametrize("time", [None, "", "0001-01-01 00:00:00", "9999-12-31 23:59:59", 7])
def test_a_time_that_is_missing_or_cannot_be_is_when_it_came(time: Any) -> None:
    before = timezone.now()
    found = parse(bank_transfer(settlement_time=None, transaction_time=time)).occurred_at

    assert before <= found <= timezone.now()


def test_numbers_where_midtrans_documents_strings_are_read() -> None:
    document = refunded(("r1", "50000.00"))
    document["refunds"] = [{"refund_chargeback_id": 17, "refund_amount": 50000}]

    [refund] = parse(document).refunds

    assert (refund.key, refund.amount) == ("refund_chargeback_id-17", 50000)


def test_a_numeric_fraud_status_is_for_a_person() -> None:
    assert parse(card("capture", fraud_status=0)).review_reason == "capture with fraud_status 0"


def test_the_dashboards_test_button_is_recognised() -> None:
    assert parse(bank_transfer(order_id="payment_notif_test_G1_5c9f")).is_test
    assert not parse(bank_transfer()).is_test


def test_while_the_key_is_rotated_both_prove_the_sender(settings: Any) -> None:
    document = bank_transfer()
    signed = body(document)
    settings.MIDTRANS_SERVER_KEY_PREVIOUS = settings.MIDTRANS_SERVER_KEY
    settings.MIDTRANS_SERVER_KEY = "SB-Mid-server-the-new-one"

    assert MIDTRANS.verify({}, signed)["order_id"] == document["order_id"]

    settings.MIDTRANS_SERVER_KEY_PREVIOUS = ""
    with pytest.raises(InvalidSignature):
        MIDTRANS.verify({}, signed)
