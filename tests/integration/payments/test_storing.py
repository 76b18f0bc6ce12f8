"""What a proven sender says is stored and answered 200, whatever it says."""

import json
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings as django_settings
from django.contrib.auth import get_user_model
from django.core import mail
from django.test import Client
from django.urls import reverse

from payments.models import Payment, PaymentNotification
from payments.notifications import read_again, retry_unmatched
from payments.providers import PROVIDERS
from tests.integration.payments.gateways import (
    TOTAL,
    an_order,
    consume_all,
    midtrans_posts,
    the_payment,
    xendit_posts,
)
from tests.unit.payments import midtrans_notifications as midtrans
from tests.unit.payments import xendit_callbacks as xendit

pytestmark = pytest.mark.django_db


def stored() -> PaymentNotification:
    return PaymentNotification.objects.get()


def test_a_provider_that_checkout_does_not_offer_is_still_heard(settings: Any) -> None:
    order = an_order()
    settings.PAYMENT_PROVIDERS = ["xendit"]

    assert midtrans_posts(midtrans.card(order_id=str(order.pk))).status_code == 200

    assert consume_all(order).status == "paid"


@pytest.mark.parametrize("suffix", ["", "-1", "-2"])
def test_an_order_is_found_by_its_id_alone_and_by_each_attempts_reference(suffix: str) -> None:
    order = an_order()

    answer = midtrans_posts(midtrans.card("settlement", order_id=f"{order.pk}{suffix}"))

    assert answer.status_code == 200
    assert consume_all(order).status == "paid"
    assert not order.is_held


@pytest.mark.parametrize(
    "changes",
    [
        {"settlement_time": "2026-11-11 00:17:05.123"},
        {"settlement_time": "2026-11-11T00:17:05+07:00"},
        {"settlement_time": None, "transaction_time": None},
        {"settlement_time": None, "transaction_time": "0001-01-01 00:00:00"},
        {"settlement_time": "9999-12-31 23:59:59"},
    ],
)
def test_an_odd_time_stops_no_payment_and_no_page(changes: dict[str, Any]) -> None:
    order = an_order()
    document = midtrans.bank_transfer(order_id=str(order.pk), **changes)

    assert midtrans_posts(document).status_code == 200

    assert consume_all(order).status == "paid"
    root = get_user_model().objects.create_superuser("root")
    client = Client()
    client.force_login(root)
    assert client.get(reverse("operations:held")).status_code == 200
    page = reverse("admin:payments_paymentnotification_changelist")
    assert client.get(page).status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        *({"payment_type": odd} for odd in (5, None, "x" * 300, {"name": "gopay"}, "a\x00b")),
        {"currency": "idr"},
    ],
)
def test_a_settlement_counts_whatever_its_way_to_pay_looks_like(
    changes: dict[str, Any],
) -> None:
    order = an_order()
    document = midtrans.bank_transfer(order_id=str(order.pk)) | changes

    assert midtrans_posts(document).status_code == 200

    assert consume_all(order).status == "paid"
    assert not order.is_held


@pytest.mark.parametrize(
    "changes",
    [
        *({"payment_channel": odd} for odd in (5, "x" * 300, {"name": "QRIS"}, "a\x00b")),
        *({"payment_method": odd, "payment_channel": None} for odd in (5, ["BANK"])),
        {"currency": "idr"},
        {"payment_id": 51234567890},
    ],
)
def test_an_invoice_counts_whatever_its_way_to_pay_looks_like(
    changes: dict[str, Any],
) -> None:
    order = an_order("xendit")

    assert xendit_posts(xendit.invoice(external_id=str(order.pk)) | changes).status_code == 200

    assert consume_all(order).status == "paid"
    assert not order.is_held


def test_a_byte_order_mark_before_the_json_is_passed_over() -> None:
    orders = an_order("xendit"), an_order("midtrans")
    named = [str(order.pk) for order in orders]
    bodies = {
        "xendit": json.dumps(xendit.invoice(external_id=named[0])).encode(),
        "midtrans": midtrans.body(midtrans.bank_transfer(order_id=named[1])),
    }
    token = {"x-callback-token": django_settings.XENDIT_CALLBACK_TOKEN}

    for name, body in bodies.items():
        answer = Client().post(
            f"/v1/webhooks/{name}",
            data=b"\xef\xbb\xbf" + body,
            content_type="application/json",
            headers=token,
        )
        assert answer.status_code == 200

    assert [consume_all(order).status for order in orders] == ["paid", "paid"]


@pytest.mark.parametrize(
    "document",
    [
        {"event": "payment_request.succeeded", "data": {"id": "pr-1"}},
        {"event": "unheard.of", "data": {}},
        {"status": "PAID"},
        xendit.payment_v3(captures=[5]),
    ],
)
def test_what_nobody_can_read_waits_for_a_person(document: dict[str, Any]) -> None:
    assert [xendit_posts(document).status_code for _ in range(2)] == [200, 200]

    assert stored().outcome == "unreadable"
    assert stored().reason
    assert json.loads(stored().document)


@pytest.mark.parametrize("body", [b"[]", b'{"id": 1, "id": 2}', b"{}", b'"\\u0000"'])
def test_what_is_json_and_no_notification_is_stored_too(body: bytes) -> None:
    answer = Client().post(
        "/v1/webhooks/xendit",
        data=body,
        content_type="application/json",
        headers={"x-callback-token": django_settings.XENDIT_CALLBACK_TOKEN},
    )

    assert answer.status_code == 200
    assert stored().outcome == "unreadable"


def test_no_personal_data_is_kept_of_what_cannot_be_read() -> None:
    document = midtrans.card(transaction_status=None, status_code="200")
    document["customer_details"] = {"email": "sari@example.com"}

    assert midtrans_posts(document).status_code == 200

    for secret in ("sari@example.com", "48111111-1114", "signature_key"):
        assert secret not in stored().document


def test_a_new_release_reads_again_what_an_older_one_could_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = an_order()
    gateway = PROVIDERS["midtrans"]
    with monkeypatch.context() as older:
        older.setattr(gateway, "parse", lambda _: 1 / 0)
        assert midtrans_posts(midtrans.card(order_id=str(order.pk))).status_code == 200
    assert (stored().outcome, the_payment(order).status) == ("unreadable", "pending")

    ayu = get_user_model().objects.create_user("ayu")
    received = read_again(notification_id=stored().pk, actor=ayu.username)

    assert received.outcome == "applied"
    assert consume_all(order).status == "paid"
    outcomes = PaymentNotification.objects.order_by("id").values_list("outcome", flat=True)
    assert list(outcomes) == ["read", "applied"]


def test_an_unmatched_notification_is_applied_by_the_sweep_when_its_order_is_there() -> None:
    order = an_order("xendit")
    assert xendit_posts(xendit.refund()).status_code == 200
    assert retry_unmatched() == 0
    xendit_posts(xendit.payment_v3(reference_id=str(order.pk)))

    assert retry_unmatched() == 1

    assert the_payment(order).refunded_rupiah == 50_000


def test_notifications_whose_order_never_comes_do_not_keep_the_others_waiting() -> None:
    for _ in range(2):
        midtrans_posts(midtrans.card(order_id=str(uuid4()), transaction_id=str(uuid4())))
    order = an_order("xendit")
    xendit_posts(xendit.refund())
    xendit_posts(xendit.payment_v3(reference_id=str(order.pk)))

    tries = (retry_unmatched(limit=2) for _ in range(50))

    assert any(tries)


@pytest.mark.parametrize("times", [1, 2])
def test_the_test_buttons_of_the_dashboards_change_nothing(times: int) -> None:
    for _ in range(times):
        test_order = "payment_notif_test_G141532850_5c9f"
        assert midtrans_posts(midtrans.bank_transfer(order_id=test_order)).status_code == 200
        assert xendit_posts(xendit.invoice(external_id="invoice_123124123")).status_code == 200

    assert set(PaymentNotification.objects.values_list("outcome", flat=True)) == {"test"}
    assert Payment.objects.count() == 0


def test_a_notification_of_thousands_of_refunds_is_held() -> None:
    order = an_order()
    midtrans_posts(midtrans.card("settlement", order_id=str(order.pk)))
    document = midtrans.refunded(("r1", "1.00"), order_id=str(order.pk))
    document["refunds"] = [{"refund_key": f"r{n}", "refund_amount": "1.00"} for n in range(3_500)]
    consume_all(order)
    mail.outbox.clear()

    assert midtrans_posts(document).status_code == 200

    assert the_payment(order).held_reason == "3500 refunds in one notification"
    consume_all(order)
    assert mail.outbox == []


def test_a_buyer_gets_no_more_than_a_handful_of_emails_in_an_hour() -> None:
    order = an_order()
    reference = {"order_id": str(order.pk)}
    midtrans_posts(midtrans.card("settlement", **reference))
    refunds = [(f"r{n}", "1000.00") for n in range(9)]
    for n in range(1, 10):
        midtrans_posts(midtrans.refunded(*refunds[:n], **reference))

    order = consume_all(order)

    assert order.refunded_rupiah == 9_000
    assert len(mail.outbox) == django_settings.EMAILS_PER_ORDER_AND_HOUR
    assert order.total_rupiah == TOTAL


@pytest.mark.parametrize("kilobytes", [300, 1_900])
def test_a_long_notification_of_a_proven_sender_is_stored_and_its_money_taken(
    kilobytes: int,
) -> None:
    order = an_order()
    long = {"order_id": str(order.pk), "custom_field1": "x" * kilobytes * 1024}

    assert midtrans_posts(midtrans.card("settlement", **long)).status_code == 200

    assert stored().outcome == PaymentNotification.Outcome.APPLIED
    assert consume_all(order).status == "paid"


def test_a_long_notification_that_cannot_be_read_is_a_persons_case() -> None:
    root = get_user_model().objects.create_superuser("root")
    client = Client()
    client.force_login(root)

    assert xendit_posts({"event": "payment.capture", "data": "x" * 1_900_000}).status_code == 200

    assert stored().outcome == PaymentNotification.Outcome.UNREADABLE
    assert len(stored().document) > 1_900_000
    for page in (
        reverse("operations:held"),
        reverse("operations:unmatched", args=[stored().pk]),
        reverse("admin:payments_paymentnotification_changelist"),
        reverse("admin:payments_paymentnotification_change", args=[stored().pk]),
    ):
        assert client.get(page).status_code == 200


def test_a_long_notification_of_an_unproven_sender_is_not_stored() -> None:
    document = {"signature_key": "0" * 128, **midtrans.card(custom_field1="x" * 1_000_000)}

    answer = Client().post("/v1/webhooks/midtrans", document, content_type="application/json")

    assert answer.status_code == 403
    assert not PaymentNotification.objects.exists()
