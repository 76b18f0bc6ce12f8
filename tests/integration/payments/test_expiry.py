"""Orders that nobody pays give their reservation back."""

from datetime import timedelta
from io import StringIO
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import LazySettings
from django.core import mail
from django.core.management import call_command
from django.db import DatabaseError
from django.utils import timezone

from orders.models import Order, OrderTransition, Product
from payments import expiry
from payments.expiry import expire_unpaid_orders
from skincare.events import relay
from skincare.events.models import OutboxEvent
from skincare.events.schema import new_event_id
from tests.integration.orders.shop import (
    a_product,
    aged,
    cancelled,
    movements,
    numbers,
    place,
)
from tests.integration.payments import gateways
from tests.unit.payments import midtrans_notifications as midtrans

pytestmark = pytest.mark.django_db

DAY = timedelta(hours=24)


def an_order(*wanted: tuple[Product, int]) -> Order:
    """An order that waits for its gateway."""
    return Order.objects.get(pk=place(*wanted, payment_method="midtrans").order_id)


def test_an_order_expires_when_its_time_is_over_and_not_before() -> None:
    serum = a_product(stocked=10)
    over, young = an_order((serum, 2)), an_order((serum, 3))
    aged(over, DAY + timedelta(seconds=1))
    aged(young, DAY - timedelta(minutes=1))

    assert expire_unpaid_orders(older_than=DAY) == 1

    over.refresh_from_db()
    young.refresh_from_db()
    assert (over.status, young.status) == ("expired", "pending")
    assert numbers(serum) == (10, 3)
    assert movements(over, serum) == [("reserve", 0, 2), ("release", 0, -2)]
    transition = OrderTransition.objects.get()
    assert transition.event_id == new_event_id("order.expired", str(over.pk))


def test_only_unpaid_orders_expire() -> None:
    serum = a_product(stocked=10)
    paid = an_order((serum, 1))
    gateways.midtrans_posts(
        midtrans.card("settlement", order_id=str(paid.pk), gross_amount="50000.00")
    )
    gateways.consume_all(paid)
    for order in (paid, cancelled(an_order((serum, 1)))):
        aged(order, 10 * DAY)

    assert expire_unpaid_orders(older_than=DAY) == 0
    assert numbers(serum) == (9, 0)


def test_a_sweep_takes_the_oldest_up_to_its_limit() -> None:
    serum = a_product(stocked=10)
    orders = [an_order((serum, 1)) for _ in range(3)]
    for days, order in zip((2, 4, 3), orders, strict=True):
        aged(order, days * DAY)

    assert expire_unpaid_orders(older_than=DAY, limit=2) == 2

    assert Order.objects.get(status="pending") == orders[0]


@pytest.mark.parametrize("error", [DatabaseError("a constraint is violated"), KeyError("a bug")])
def test_one_broken_order_does_not_stop_the_others(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    serum = a_product(stocked=10)
    broken, fine = an_order((serum, 1)), an_order((serum, 2))
    aged(broken, 3 * DAY)
    aged(fine, 2 * DAY)
    expire = expiry.expire

    def fail_for_broken(order: Order) -> bool:
        is_expired = expire(order)
        if order.pk == broken.pk:
            raise error
        return is_expired

    monkeypatch.setattr(expiry, "expire", fail_for_broken)

    assert expire_unpaid_orders(older_than=DAY) == 1

    broken.refresh_from_db()
    assert broken.status == "pending"
    assert numbers(serum) == (10, 1)


def test_the_relay_sweeps_every_minute() -> None:
    serum = a_product(stocked=10)
    aged(an_order((serum, 2)), timedelta(hours=25))
    (job,) = [job for job in relay._jobs if job.name == "expire_unpaid_orders"]

    job.run()

    assert job.seconds == 60
    assert numbers(serum) == (10, 0)


def test_the_command_says_how_many_expired() -> None:
    serum = a_product(stocked=10)
    aged(an_order((serum, 2)), timedelta(hours=25))
    out = StringIO()

    call_command("expire_orders", stdout=out)
    call_command("expire_orders", "--older-than-hours=0.5", stdout=out)

    assert out.getvalue() == "1 orders expired\n0 orders expired\n"


# -- What an order's payments say ------------------------------------------------------------------


def notify(order: Order, *documents: dict[str, Any]) -> None:
    for document in documents:
        changed = {**document, "order_id": str(order.pk)}
        assert gateways.midtrans_posts(changed).status_code == 200


@pytest.mark.parametrize(
    "documents",
    [
        [midtrans.card("capture", fraud_status="challenge")],
        [midtrans.card("authorize")],
        [midtrans.card("settlement", gross_amount="150071.00")],
        [midtrans.card("settlement", status_code="201")],
        [midtrans.card("deny", status_code="202"), midtrans.card("settlement")],
    ],
    ids=["challenged", "authorized", "other amount", "unclear", "contradiction"],
)
def test_an_order_whose_money_is_in_doubt_never_expires(documents: list[dict[str, Any]]) -> None:
    order = gateways.an_order()
    notify(order, *documents)
    aged(order, 3 * DAY)

    assert expire_unpaid_orders() == 0

    order.refresh_from_db()
    assert order.status == "pending"
    assert OutboxEvent.objects.filter(event_type="order.expired").count() == 0


@pytest.mark.parametrize(("word", "expired"), [("settlement", 0), ("deny", 1)])
def test_an_order_does_not_expire_while_its_gateway_is_asked_about_money(
    word: str, expired: int, settings: LazySettings
) -> None:
    settings.PROVIDERS_ASKED = ["midtrans"]
    order = gateways.an_order()
    notify(order, midtrans.bank_transfer(word))
    aged(order, 3 * DAY)

    assert expire_unpaid_orders() == expired


def test_an_order_whose_money_is_in_is_paid_by_the_sweep_even_if_its_event_is_lost() -> None:
    order = gateways.an_order()
    notify(order, midtrans.bank_transfer("settlement"))
    OutboxEvent.objects.filter(event_type="payment.processed").delete()
    aged(order, 3 * DAY)

    assert expire_unpaid_orders() == 0

    order.refresh_from_db()
    assert order.status == "paid"


def test_an_order_waits_as_long_as_its_gateway_lets_the_buyer_pay() -> None:
    order = gateways.an_order()
    until = timezone.now() + 2 * DAY
    local = timezone.localtime(until, ZoneInfo("Asia/Jakarta"))
    notify(order, midtrans.bank_transfer("pending", expiry_time=f"{local:%Y-%m-%d %H:%M:%S}"))
    Order.objects.filter(pk=order.pk).update(created_at=timezone.now() - 2 * DAY)

    assert expire_unpaid_orders() == 0

    order.refresh_from_db()
    assert order.expires_at == until.replace(microsecond=0)


def test_an_expired_order_says_goodbye_once() -> None:
    order = gateways.an_order()
    aged(order, 2 * DAY)
    assert [expire_unpaid_orders(), expire_unpaid_orders()] == [1, 0]

    gateways.consume_all(order)

    assert order.status == "expired"
    _, goodbye = mail.outbox
    assert goodbye.subject == f"Pesanan {order.number} sudah berakhir"
    assert "tidak menerima pembayaran" in str(goodbye.body)


def test_an_order_that_was_paid_late_and_reversed_expires_a_second_time() -> None:
    order = gateways.an_order()
    aged(order, 2 * DAY)
    expire_unpaid_orders()
    notify(order, midtrans.bank_transfer("settlement"), midtrans.bank_transfer("deny"))
    order = gateways.consume_all(order)
    assert order.status == "expired"
    notify(order, midtrans.bank_transfer("settlement", transaction_id="second"))
    assert gateways.consume_all(order).status == "paid"
    notify(order, midtrans.bank_transfer("deny", transaction_id="second"))
    assert gateways.consume_all(order).status == "pending"

    assert expire_unpaid_orders() == 1

    assert OutboxEvent.objects.filter(event_type="order.expired").count() == 2
