"""What the release before left behind, and what it still does while a deployment rolls."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.db import transaction
from psycopg import sql

from orders.locks import lock_order
from orders.models import Order
from payments import decisions
from payments.hold_codes import HoldCode
from payments.holds import adopt_all, open_hold, open_holds
from payments.models import Hold, Payment
from payments.money_check import check_money
from skincare.events import relay
from tests.integration.payments.gateways import (
    an_order,
    consume_all,
    midtrans_posts,
    the_payment,
    told,
)
from tests.unit.payments import midtrans_notifications as midtrans

TOTAL = 150_000
#: The migrations of the release before (tests/release/previous.py).
BEFORE = ("events 0002", "orders 0003", "payments 0004")
LONG = "looked at\tby phone, " + "and then again, " * 60


@pytest.fixture
def old(database_url: str) -> Iterator["OldShop"]:
    """A database as the release before had it."""
    name = f"old_{uuid4().hex}"
    with psycopg.connect(database_url, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            url = urlsplit(database_url)._replace(path=f"/{name}").geturl()
            yield OldShop(url)
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


class OldShop:
    """Rows as the release before wrote them."""

    def __init__(self, url: str) -> None:
        self.url = url
        for target in ("auth", *BEFORE):
            migrated = self.manage("migrate", *target.split(), "--no-input")
            assert migrated.returncode == 0, migrated.stdout + migrated.stderr
        self.run(
            "INSERT INTO auth_user (password, is_superuser, username, first_name, last_name, email,"
            " is_staff, is_active, date_joined) VALUES ('', true, 'ayu', '', '', '', true, true,"
            " now())"
        )
        self.run(
            "INSERT INTO orders_product (sku, name, description, price_rupiah, stock, reserved,"
            " is_active, created_at, search_in_stock)"
            " VALUES ('SKU-1', 'Serum', '', 75000, 100, 0, true, now(), true)"
        )
        self._moves(None, "receive", 100, 0)

    def manage(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-W", "ignore", "manage.py", *arguments],
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "tests.settings",
                "DATABASE_URL": self.url,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, statement: str, values: Any = ()) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement, values)

    def ask(self, statement: str, *values: Any) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement, values).fetchall()

    def order(self, number: str, status: str, held: str = "", refunded: int = 0) -> str:
        pk = str(uuid4())
        self.run(
            "INSERT INTO orders_order (id, number, email, user_id, payment_method, language,"
            " status, total_rupiah, refunded_rupiah, held_reason, created_at, updated_at)"
            " VALUES (%s, %s, 'sari@example.com', 'guest', 'midtrans', 'id', %s, %s, %s, %s,"
            " now(), now())",
            [pk, number, status, TOTAL, refunded, held.replace("ORDER", pk)],
        )
        self.run(
            "INSERT INTO orders_orderline (order_id, product_id, sku, name, quantity,"
            " unit_price_rupiah) SELECT %s, id, sku, name, 2, 75000 FROM orders_product",
            [pk],
        )
        if status in ("pending", "paid", "partly_refunded"):
            self._moves(pk, "reserve", 0, 2)
        if status in ("paid", "partly_refunded"):
            self._moves(pk, "sell", -2, -2)
        return pk

    def _moves(self, order: str | None, kind: str, stock: int, reserved: int) -> None:
        self.run(
            "INSERT INTO orders_stockmovement (event_id, product_id, order_id, kind, stock_delta,"
            " reserved_delta, created_at) SELECT %s, id, %s, %s, %s, %s, now() FROM orders_product",
            [uuid4().hex, order, kind, stock, reserved],
        )
        if order is not None:
            self.run(
                "UPDATE orders_product SET stock = stock + %s, reserved = reserved + %s",
                [stock, reserved],
            )

    def payment(
        self, order: str, status: str, transaction_id: str = "", held: str = "", refunded: int = 0
    ) -> str:
        pk = str(uuid4())
        is_paid = status in ("settled", "captured", "partly_refunded", "refunded")
        self.run(
            "INSERT INTO payments_payment (id, order_id, provider, transaction_id, other_ids,"
            " channel, status, amount_rupiah, refunded_rupiah, held_reason, created_at, updated_at,"
            " paid_at) VALUES (%s, %s, 'midtrans', %s, '{}', '', %s, %s, %s, %s, now(), now(),"
            " CASE WHEN %s THEN clock_timestamp() END)",
            [pk, order, transaction_id, status, TOTAL, refunded, held, is_paid],
        )
        if refunded:
            self.run(
                "INSERT INTO payments_paymentrefund (payment_id, key, kind, amount_rupiah,"
                " refunded_at, created_at) VALUES (%s, 'r1', 'refund', %s, now(), now())",
                [pk, refunded],
            )
        return pk

    def holds(self, order: str, reason: str) -> None:
        self.run("UPDATE orders_order SET held_reason = %s WHERE id = %s", [reason, order])


def test_old_rows_become_holds_and_attempts_and_nothing_that_agreed_disagrees(
    old: OldShop,
) -> None:
    # given: orders that wait, without and with what their payments were held for
    waiting = old.order("SKN-1", "pending")
    old.payment(waiting, "pending")
    odd = old.order("SKN-2", "pending")
    reason = "amount 149000 rupiah instead of 150000"
    pk = old.payment(odd, "pending", "t-2", held=reason)
    old.holds(odd, f"payment {pk}: {reason}\n\n{LONG}\nasked  twice ")
    old.run(
        "INSERT INTO payments_paymentnotification (provider, identity, transaction_id,"
        " order_reference, status, amount, currency, channel, occurred_at, payload, received_at,"
        " payment_id, outcome, reason, decided_at) VALUES ('midtrans', 'n-2', 't-2', %s, 'settled',"
        " 149000, 'IDR', '', now(), '{}', now(), %s, 'held', %s, now())",
        [odd, pk, reason],
    )
    old.run(
        "INSERT INTO payments_acceptance (payment_id, held_reason, reason, requested_by_id,"
        " requested_at) SELECT %s, %s, 'it is right', id, now() FROM auth_user",
        [pk, reason],
    )
    # and: orders with money, in all ways
    old.payment(old.order("SKN-3", "paid"), "settled", "t-3")
    twice = old.order("SKN-4", "paid")
    first = old.payment(twice, "settled", "t-4a")
    why = f"paid twice: payment {first} has paid the order already"
    second = old.payment(twice, "settled", "t-4b", held=why)
    old.holds(twice, f"payment {second}: {why}")
    back = old.order("SKN-5", "refunded", refunded=TOTAL)
    old.payment(back, "refunded", "t-5", refunded=TOTAL)
    part = old.order("SKN-6", "partly_refunded", refunded=50_000)
    charged = old.payment(part, "partly_refunded", "t-6", refunded=50_000)
    old.holds(part, f"payment {charged}: 50000 rupiah charged back (c)")
    old.payment(old.order("SKN-7", "cancelled"), "denied", "t-7")
    # and: one that did not agree before
    old.order("SKN-WRONG", "paid")

    # when
    migrated = old.manage("migrate", "--no-input")

    # then
    assert migrated.returncode == 0, migrated.stderr
    checked = old.manage("check_money")
    assert checked.returncode != 0
    lines = [line for line in checked.stdout.splitlines() if line.startswith("SKN-")]
    assert {line.split(":")[0] for line in lines} == {"SKN-WRONG"}, checked.stdout
    held = old.ask(
        "SELECT o.number, h.code, h.payment_id::text FROM payments_hold h"
        " JOIN orders_order o ON o.id = h.order_id WHERE h.closed_at IS NULL ORDER BY h.id"
    )
    assert sorted(held, key=str) == sorted(
        [
            ("SKN-2", "unclear_report", pk),
            ("SKN-2", "other", None),
            ("SKN-2", "other", None),
            ("SKN-4", "surplus", second),
            ("SKN-6", "chargeback", charged),
        ],
        key=str,
    )
    [(hold_payment,)] = old.ask(
        "SELECT h.payment_id::text FROM payments_acceptance a JOIN payments_hold h"
        " ON h.id = a.hold_id WHERE a.closed_at IS NULL"
    )
    assert hold_payment == pk
    assert old.ask("SELECT DISTINCT number FROM payments_payment") == [(1,)]
    assert old.ask("SELECT count(*) FROM payments_payment WHERE times_paid = 1") == [(5,)]


def put_aside_by_the_old_release(order: Order, line: str) -> None:
    """As the release before does it: the order's text, and no row."""
    found = Order.objects.get(pk=order.pk)
    found.held_reason = "\n".join([*found.held_reason.splitlines(), line])
    found.save(update_fields=["held_reason"])


@pytest.mark.django_db
def test_what_the_release_before_puts_aside_is_found_and_made_a_hold() -> None:
    order = an_order()
    midtrans_posts(midtrans.card("settlement", order_id=str(order.pk)))
    consume_all(order)
    put_aside_by_the_old_release(order, "asked  by phone")
    put_aside_by_the_old_release(order, f"payment {the_payment(order).pk}: 5 rupiah charged back")
    [found] = check_money()
    assert "its open holds say []" in str(found)

    assert adopt_all() == 1

    assert [(hold.code, hold.payment_id is None) for hold in open_holds(order.pk)] == [
        (HoldCode.OTHER, True),
        (HoldCode.CHARGEBACK, False),
    ]
    assert the_payment(order).held_reason == "5 rupiah charged back"
    assert list(check_money()) == []
    assert adopt_all() == 0
    assert any(job.run is adopt_all for job in relay._jobs)


@pytest.mark.django_db
def test_another_hold_loses_nothing_that_the_release_before_put_aside() -> None:
    order = an_order()
    put_aside_by_the_old_release(order, "asked by phone")
    with transaction.atomic():
        open_hold(lock_order(order.pk), HoldCode.OTHER, "seen twice")

    order.refresh_from_db()
    assert order.held_reason.splitlines() == ["asked by phone", "seen twice"]
    get_user_model().objects.create_user("ayu")
    put_aside_by_the_old_release(order, "asked again")
    decisions.dismiss(
        hold_id=Hold.objects.get(reason="seen twice").pk, reason="looked at", actor="ayu"
    )
    order.refresh_from_db()
    assert order.held_reason.splitlines() == ["asked by phone", "asked again"]
    assert list(check_money()) == []


@pytest.mark.django_db
def test_a_hold_that_the_release_before_ended_without_its_row_is_decided_once_more() -> None:
    order = an_order()
    with transaction.atomic():
        open_hold(lock_order(order.pk), HoldCode.OTHER, "seen twice")
    Order.objects.filter(pk=order.pk).update(held_reason="")

    assert adopt_all() == 1

    order.refresh_from_db()
    assert order.held_reason == "seen twice"
    assert list(check_money()) == []


@pytest.mark.django_db
def test_money_that_comes_again_after_the_release_before_took_it_is_another_event() -> None:
    order = an_order()
    for word in ("capture", "cancel"):
        midtrans_posts(midtrans.card(word, order_id=str(order.pk)))
    # As the release before leaves it, which counted nothing.
    Payment.objects.filter(order=order).update(times_paid=0, times_failed=0)

    midtrans_posts(midtrans.card("settlement", order_id=str(order.pk)))

    assert [name for name, _ in told(order)] == [
        "payment.processed",
        "payment.failed",
        "payment.processed",
    ]
    assert consume_all(order).status == "paid"
    assert list(check_money()) == []
