"""The emails: words, amounts and times, in two languages, under an id that never changes."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.core.mail import EmailMultiAlternatives
from django.utils import timezone

from orders import emails
from orders.models import Order
from skincare.events.claim import Claim, claim
from skincare.events.exceptions import LostClaim
from skincare.events.models import ProcessedEvent
from skincare.events.schema import Event, new_event_id
from tests.integration.orders.shop import (
    a_product,
    an_order,
    cancelled,
    expired,
    paid,
    refunded,
)

pytestmark = pytest.mark.django_db

EVENT = "midtrans:settlement:1"


@pytest.fixture(params=["id", "en"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def order_of(language: str) -> Order:
    serum = a_product(price_rupiah=75_000, name="Serum & Krim <Malam>")
    order = an_order((serum, 2), language=language)
    order.created_at = datetime(2026, 11, 11, 17, 30, tzinfo=UTC)
    order.expires_at = order.created_at + timedelta(hours=24)
    order.save(update_fields=["created_at", "expires_at"])
    return order


def an_event(order: Order) -> Event:
    return Event(
        event_id=EVENT,
        event_type="payment.processed",
        order_id=str(order.pk),
        payment_id="",
        user_id="guest",
        amount_rupiah=order.total_rupiah,
        created_at="2026-11-12T00:30:00+07:00",
    )


def sent(outbox: list[EmailMultiAlternatives]) -> EmailMultiAlternatives:
    (email,) = outbox
    assert email.to == ["sari@example.com"]
    assert email.from_email == "Toko Skincare <pesanan@skincare.example>"
    assert email.extra_headers["Auto-Submitted"] == "auto-generated"
    return email


def html_of(email: EmailMultiAlternatives) -> str:
    ((html, mimetype),) = email.alternatives
    assert mimetype == "text/html"
    return str(html)


def says(email: EmailMultiAlternatives, *sentences: str) -> None:
    """Both forms say these sentences."""
    for sentence in sentences:
        assert sentence in email.body
        assert sentence in html_of(email)


SENTENCES = {
    "id": {
        "order_confirmation": (
            "Pesanan {number} kami terima",
            "Terima kasih. Pesanan {number} kami terima pada 12 November 2026 00:30 WIB.",
            "Kami menunggu pembayaran Anda sampai 13 November 2026 00:30 WIB.",
        ),
        "receipt": (
            "Pembayaran pesanan {number} kami terima",
            "Terima kasih. Pembayaran sebesar Rp150.000 untuk pesanan {number} sudah kami terima.",
        ),
        "payment_failed": (
            "Pembayaran pesanan {number} tidak berhasil",
            "Pembayaran untuk pesanan {number} tidak berhasil, jadi pesanan ini dibatalkan.",
        ),
        "order_expired": (
            "Pesanan {number} sudah berakhir",
            "Waktu pembayaran pesanan {number} sudah habis",
        ),
        "refund": (
            "Pengembalian dana pesanan {number}",
            "Kami mengembalikan dana Rp30.000 untuk pesanan {number}.",
            "Sejauh ini Rp40.000 sudah dikembalikan.",
        ),
    },
    "en": {
        "order_confirmation": (
            "We have received your order {number}",
            "Thank you. We received your order {number} on 12 November 2026 00:30 WIB.",
            "We are waiting for your payment until 13 November 2026 00:30 WIB.",
        ),
        "receipt": (
            "We have received your payment for order {number}",
            "Thank you. We have received your payment of Rp150.000 for order {number}.",
        ),
        "payment_failed": (
            "The payment for order {number} failed",
            "The payment for order {number} failed, so the order is cancelled.",
        ),
        "order_expired": (
            "Order {number} has ended",
            "The time to pay for order {number} is over, and we have received no payment.",
        ),
        "refund": (
            "Refund for order {number}",
            "We are refunding Rp30.000 for order {number}.",
            "So far Rp40.000 has been refunded.",
        ),
    },
}


def send(kind: str, order: Order) -> None:
    """Bring the order to where this email is due, and send it."""
    match kind:
        case "order_confirmation":
            emails.send_order_confirmation(order_id=order.pk, event_id=EVENT)
        case "receipt":
            paid(order)
            emails.send_receipt(order_id=order.pk, event_id=EVENT)
        case "payment_failed":
            cancelled(order)
            emails.send_payment_failed(order_id=order.pk, event_id=EVENT)
        case "order_expired":
            expired(order)
            emails.send_order_expired(order_id=order.pk, event_id=EVENT)
        case "refund":
            refunded(paid(order), 40_000)
            emails.send_refund(order_id=order.pk, event_id=EVENT, amount_rupiah=30_000)


@pytest.mark.parametrize("kind", list(SENTENCES["id"]))
def test_each_email_in_each_language(
    kind: str, language: str, mailoutbox: list[EmailMultiAlternatives]
) -> None:
    order = order_of(language)

    send(kind, order)

    email = sent(mailoutbox)
    subject, *sentences = (text.format(number=order.number) for text in SENTENCES[language][kind])
    assert email.subject == subject
    says(email, *sentences, "Total")
    assert "2 x Serum & Krim <Malam>: Rp150.000" in email.body
    assert "Serum &amp; Krim &lt;Malam&gt;" in html_of(email)
    assert f'<html lang="{language}">' in html_of(email)
    assert email.extra_headers["Message-ID"] == emails.message_id(kind=kind, event_id=EVENT)
    # Where the provider replaces it (Amazon SES), this one still tells a repeat.
    assert email.extra_headers["X-Shop-Message-ID"] == email.extra_headers["Message-ID"]


@pytest.mark.parametrize("kind", list(SENTENCES["id"]))
def test_no_sentence_is_left_untranslated(
    kind: str, mailoutbox: list[EmailMultiAlternatives]
) -> None:
    send(kind, order_of("en"))

    email = sent(mailoutbox)
    for text in (str(email.subject), str(email.body), html_of(email)):
        text = text.replace("pesanan@skincare.example", "")  # where the shop is written to
        assert not re.search(r"\b(pesanan|pembayaran|kami|Anda|sudah|Halo|Salam)\b", text)


def test_the_buyers_language_does_not_depend_on_the_workers(
    mailoutbox: list[EmailMultiAlternatives],
) -> None:
    order = order_of("id")
    with timezone.override(UTC):
        emails.send_order_confirmation(order_id=order.pk, event_id=EVENT)

    says(sent(mailoutbox), "12 November 2026 00:30 WIB")


def test_an_email_is_sent_by_a_claim_that_holds_and_by_no_other(
    mailoutbox: list[EmailMultiAlternatives],
) -> None:
    order = order_of("id")
    held = claim(an_event(order), worker="w1")
    assert isinstance(held, Claim)

    emails.send_receipt(order_id=order.pk, event_id=held.event_id, held=held)
    ProcessedEvent.objects.filter(event_id=held.event_id).update(fence=held.fence + 1)
    with pytest.raises(LostClaim):
        emails.send_receipt(order_id=order.pk, event_id=held.event_id, held=held)

    assert len(mailoutbox) == 1


def test_an_email_that_is_sent_again_has_the_same_message_id(
    mailoutbox: list[EmailMultiAlternatives],
) -> None:
    order = order_of("id")
    for event_id in (EVENT, EVENT, "midtrans:settlement:2"):
        emails.send_receipt(order_id=order.pk, event_id=event_id)

    first, again, other = (email.message()["Message-ID"] for email in mailoutbox)

    assert first == again != other


@pytest.mark.parametrize("event_id", ["a", "a..b:c", ".", "x" * 128])
def test_a_message_id_is_well_formed_whatever_the_event_id(event_id: str) -> None:
    # RFC 5322, 3.6.4: "<" dot-atom "@" dot-atom ">"
    atom = r"[A-Za-z0-9_-]+"
    dots = rf"{atom}(\.{atom})*"

    assert re.fullmatch(rf"<{dots}@{dots}>", emails.message_id(kind="receipt", event_id=event_id))


def test_two_kinds_of_email_for_one_event_have_ids_of_their_own() -> None:
    one, other = (emails.message_id(kind=kind, event_id=EVENT) for kind in ("receipt", "refund"))

    assert one != other
    assert one == f"<{new_event_id('email', EVENT)}.receipt@skincare.example>"


@pytest.mark.parametrize("price_rupiah", [0, 75_000])
def test_only_who_owes_something_is_asked_to_pay(
    price_rupiah: int, mailoutbox: list[EmailMultiAlternatives]
) -> None:
    order = an_order((a_product(price_rupiah=price_rupiah), 1))
    if price_rupiah:
        paid(order)

    emails.send_order_confirmation(order_id=order.pk, event_id=EVENT)

    assert "menunggu pembayaran" not in sent(mailoutbox).body


def test_the_buyer_of_a_held_order_learns_that_it_is_checked(
    mailoutbox: list[EmailMultiAlternatives],
) -> None:
    order = paid(order_of("id"))
    Order.objects.filter(pk=order.pk).update(held_reason="paid twice")

    emails.send_receipt(order_id=order.pk, event_id=EVENT)

    says(sent(mailoutbox), "Pesanan Anda sedang kami periksa sebelum dikirim.")


def test_a_full_refund_says_so(mailoutbox: list[EmailMultiAlternatives]) -> None:
    order = refunded(paid(order_of("id")), 150_000)

    emails.send_refund(order_id=order.pk, event_id=EVENT, amount_rupiah=150_000)

    says(sent(mailoutbox), "Seluruh pembayaran sudah dikembalikan.")
    assert "Sejauh ini" not in mailoutbox[0].body


def test_an_order_that_was_not_cancelled_is_not_said_to_be(
    mailoutbox: list[EmailMultiAlternatives],
) -> None:
    order = refunded(paid(order_of("id")), 30_000)

    emails.send_payment_failed(order_id=order.pk, event_id=EVENT)

    says(sent(mailoutbox), "tidak berhasil. Kami akan menghubungi Anda.")
    assert "dibatalkan" not in mailoutbox[0].body


def test_no_address_is_logged(
    mailoutbox: list[EmailMultiAlternatives], caplog: pytest.LogCaptureFixture
) -> None:
    order = paid(order_of("id"))

    emails.send_receipt(order_id=order.pk, event_id=EVENT)

    assert "email_sent" in caplog.text
    assert "sari@example.com" not in caplog.text
