"""A buyer gives an order up: as long as no money moves, and with no page left to pay on."""

from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.db import transaction
from django.test import Client
from django.utils import timezone

from orders.locks import lock_order
from orders.models import Order
from orders.status import OrderStatus
from payments.hold_codes import HoldCode
from payments.holds import open_hold, open_holds
from payments.models import Payment
from payments.money_check import check_money
from payments.reconciliation import sweep
from skincare.events.models import OutboxEvent
from skincare.local.gateways.simulator import Simulator
from tests.integration.orders.shop import expired, numbers, shipped
from tests.integration.payments.gateways import an_order, consume_all, midtrans_posts
from tests.integration.payments.test_confirmation import shown
from tests.integration.payments.test_paying import both, buyer, buyer_pays, later, pay
from tests.unit.payments import midtrans_notifications as midtrans

pytestmark = pytest.mark.django_db


def cancel(order: Order, **headers: str) -> Any:
    return Client().post(f"/v1/orders/{order.pk}/cancel", headers=headers)


def notify(order: Order, document: dict[str, Any]) -> None:
    assert midtrans_posts({**document, "order_id": str(order.pk)}).status_code == 200


def is_held_for(order: Order) -> list[str]:
    return [hold.code for hold in open_holds(order.pk)]


def test_an_unpaid_order_is_cancelled_once_and_its_stock_is_free() -> None:
    order = an_order()
    product = order.lines.get().product

    first, again = cancel(order), cancel(order)

    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert first.json()["status"] == "cancelled"
    assert numbers(product)[1] == 0
    assert order.transitions.get(to_status="cancelled").reason == "cancelled by its buyer"
    assert list(check_money()) == []


def test_a_declined_card_does_not_keep_a_buyer_from_cancelling() -> None:
    order = an_order()
    notify(order, midtrans.card("deny", status_code="202"))

    assert cancel(consume_all(order)).status_code == 200


def test_an_order_that_has_expired_stays_so() -> None:
    order = expired(an_order())

    assert cancel(order).json()["status"] == "expired"


def test_an_order_that_has_expired_is_not_over_where_its_money_came_late() -> None:
    order = expired(an_order())
    notify(order, midtrans.card("settlement"))

    assert "money is in" in cancel(order).json()["detail"]


def test_an_order_that_nobody_knows_is_not_found() -> None:
    assert cancel(Order(pk=uuid4())).status_code == 404


@pytest.mark.parametrize("is_processed", [True, False])
@pytest.mark.parametrize(
    ("document", "why"),
    [
        (midtrans.card("settlement"), "money is in"),
        (midtrans.card("capture"), "money is in"),
        (midtrans.card("capture", fraud_status="challenge"), "being checked"),
        (midtrans.card("authorize"), "being checked"),
        (midtrans.refunded(("r", "50000.00")), "money is in"),
        (midtrans.card("settlement", gross_amount="1000.00"), "looks at its payment"),
        (midtrans.refunded(("r", "150000.00"), transaction_status="refund"), "is over"),
    ],
)
def test_money_that_is_in_or_in_doubt_is_not_cancelled(
    document: dict[str, Any], why: str, is_processed: bool
) -> None:
    order = an_order()
    notify(order, document)
    if is_processed:
        consume_all(order)

    answer = cancel(order)

    assert answer.status_code == 409
    assert answer.json()["type"].endswith("order-not-cancellable")
    assert why in answer.json()["detail"]
    order.refresh_from_db()
    assert order.cancelled_at is None


def test_money_that_its_gateway_was_not_asked_about_yet_is_on_its_way(gateways: Simulator) -> None:
    order = an_order("midtrans")
    notify(order, midtrans.card("settlement"))

    assert "being checked" in cancel(order).json()["detail"]


def test_goods_that_are_out_are_not_cancelled() -> None:
    answer = cancel(shipped(an_order()), **{"Accept-Language": "id"})

    assert answer.json()["detail"] == "Barangnya sudah dikirim."
    assert answer.json()["title"] == "Pesanan tidak dapat dibatalkan."


@both
def test_its_page_is_closed_by_the_next_sweep(name: str, gateways: Simulator) -> None:
    order = an_order(name)
    pay(order)
    assert cancel(order).status_code == 200
    assert Payment.objects.get(order=order).status == "pending"

    sweep()

    payment = Payment.objects.get(order=order)
    assert payment.status in ("cancelled", "expired")
    if name == "midtrans":
        session = gateways.midtrans.sessions[payment.session_id]
        assert not gateways.midtrans.page_is_open(session)
    else:
        assert gateways.xendit.invoices[payment.session_id].status == "EXPIRED"
    assert shown(consume_all(order))[0] == "cancelled"
    assert pay(order).status_code == 409


def test_a_transaction_that_waits_for_its_transfer_is_cancelled_too(gateways: Simulator) -> None:
    order = an_order("midtrans")
    pay(order)
    buyer(gateways, order, "pick", method="bca_va")
    cancel(order)

    sweep()
    consume_all(order)

    assert Payment.objects.get(order=order).status == "cancelled"
    assert gateways.midtrans.charges == []
    assert [message.subject for message in mail.outbox if "gagal" in message.subject.lower()] == []


@both
def test_money_that_comes_before_its_page_is_closed_is_held(name: str, gateways: Simulator) -> None:
    order = an_order(name)
    pay(order)
    cancel(order)
    buyer_pays(gateways, order)

    sweep()

    assert consume_all(order).is_held
    assert is_held_for(order) == [HoldCode.PAID_AFTER_CANCEL]
    assert list(check_money()) == []


@both
def test_a_page_is_closed_when_its_gateway_is_back(
    name: str, gateways: Simulator, settings: Any
) -> None:
    order = an_order(name)
    pay(order)
    cancel(order)
    urls = settings.MIDTRANS_API_URL, settings.XENDIT_API_URL
    settings.MIDTRANS_API_URL = settings.XENDIT_API_URL = "http://127.0.0.1:9"
    sweep()
    assert Payment.objects.get(order=order).status == "pending"

    settings.MIDTRANS_API_URL, settings.XENDIT_API_URL = urls
    later(gateways, 121)
    sweep()

    assert Payment.objects.get(order=order).status in ("cancelled", "expired")


def test_an_order_that_a_person_looks_at_is_not_cancelled() -> None:
    order = an_order()
    with transaction.atomic():
        open_hold(lock_order(order.pk), HoldCode.OTHER, "asked by the buyer")

    assert "looks at its payment" in cancel(order).json()["detail"]


def test_nothing_is_published_or_mailed_for_a_buyer_who_knows() -> None:
    order = consume_all(an_order())
    before = (OutboxEvent.objects.count(), len(mail.outbox))

    cancel(order)

    assert (OutboxEvent.objects.count(), len(mail.outbox)) == before
    order.refresh_from_db()
    assert order.status == OrderStatus.CANCELLED
    assert order.cancelled_at is not None
    assert order.cancelled_at <= timezone.now()
