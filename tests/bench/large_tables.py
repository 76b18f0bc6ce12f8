"""The shop after two million events, beside the same shop with next to none: does it get slower?

The tables are filled by SQL, not by the shop: that would take a day.
"""

import json
import re
import statistics
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from html import unescape
from typing import Any
from urllib.parse import quote

from psycopg import sql

from tests.bench import load
from tests.bench.bench import Bench, say
from tests.bench.midtrans import settlements
from tests.bench.report import Table
from tests.bench.shop import Connection, Shop, checkouts
from tests.bench.subject import HERE, Subject

PATH_REPEATS = 100
PATH_TURNS = 5
PAGE_REPEATS = 5
FEW_EVENTS = 200
"""The empty shop is not quite empty, so that every list has something to find."""
SHOWN = 12
"""So many of the operator's pages are in the table: those that grew most."""
LISTS = (
    *("orders/order", "orders/orderline", "orders/ordertransition", "orders/stockmovement"),
    *("orders/checkoutrequest", "orders/product"),
    *("payments/payment", "payments/paymentnotification", "payments/paymentrefund"),
    *("events/outboxevent", "events/processedevent"),
)
PAGES = ("/admin/", "/admin/operations/", "/admin/operations/held/")

Columns = dict[str, str]
"""What a row's columns hold, as SQL over `n`, the number of the row's order or event."""

_ORDER: Columns = {
    "id": "md5('order' || n)::uuid",
    "number": "'SKN-BENCH-' || n",
    "email": "'pembeli' || n % 50000 || '@skincare.example'",
    "user_id": "CASE WHEN n % 3 = 0 THEN (n % 20000)::text ELSE 'guest' END",
    "payment_method": "CASE WHEN n % 2 = 0 THEN 'midtrans' ELSE 'xendit' END",
    "language": "'id'",
    "status": "CASE n % 20 WHEN 0 THEN 'expired' WHEN 1 THEN 'cancelled' ELSE 'paid' END",
    "total_rupiah": "125000",
    "refunded_rupiah": "0",
    "held_reason": "''",
    "created_at": "{at}",
    "updated_at": "{at}",
    "paid_at": "CASE WHEN n % 20 > 1 THEN {at} END",
}
_LINE: Columns = {
    "order_id": "md5('order' || n)::uuid",
    "product_id": "(SELECT min(id) FROM orders_product) + n % 20",
    "sku": "'SKU-' || n % 20",
    "name": "'Serum'",
    "quantity": "1",
    "unit_price_rupiah": "125000",
}
_TRANSITION: Columns = {
    "event_id": "md5('paid' || n)::uuid::text",
    "order_id": "md5('order' || n)::uuid",
    "from_status": "'pending'",
    "to_status": "'paid'",
    "reason": "''",
    "created_at": "{at}",
}
_MOVEMENT: Columns = {
    "event_id": "md5(CASE WHEN n % 2 = 0 THEN 'placed' ELSE 'paid' END || n / 2)::uuid::text",
    "product_id": "(SELECT min(id) FROM orders_product) + n / 2 % 20",
    "order_id": "md5('order' || n / 2)::uuid",
    "kind": "CASE WHEN n % 2 = 0 THEN 'reserve' ELSE 'sell' END",
    "stock_delta": "CASE WHEN n % 2 = 0 THEN 0 ELSE -1 END",
    "reserved_delta": "CASE WHEN n % 2 = 0 THEN 1 ELSE -1 END",
    "created_at": "{at}",
}
_CHECKOUT_REQUEST: Columns = {
    "scope": "'guest'",
    "key": "md5('key' || n)",
    "body_hash": "md5('body' || n) || md5('hash' || n)",
    "response": "'{{}}'::jsonb",
    "order_id": "md5('order' || n)::uuid",
    "created_at": "{at}",
}
_PAYMENT: Columns = {
    "id": "md5('payment' || n)::uuid",
    "order_id": "md5('order' || n)::uuid",
    "provider": "CASE WHEN n % 2 = 0 THEN 'midtrans' ELSE 'xendit' END",
    "transaction_id": "md5('transaction' || n)::uuid::text",
    "reference": "md5('order' || n)::uuid || '-1'",
    "other_ids": "ARRAY[]::varchar[]",
    "channel": "'qris'",
    "status": "CASE n % 20 WHEN 0 THEN 'expired' WHEN 1 THEN 'failed' ELSE 'settled' END",
    "amount_rupiah": "125000",
    "refunded_rupiah": "0",
    "held_reason": "''",
    "created_at": "{at}",
    "updated_at": "{at}",
    "paid_at": "{at}",
}
_NOTIFICATION: Columns = {
    "provider": "CASE WHEN n % 2 = 0 THEN 'midtrans' ELSE 'xendit' END",
    "identity": "md5('transaction' || n)::uuid || ':settlement'",
    "transaction_id": "md5('transaction' || n)::uuid::text",
    "order_reference": "md5('order' || n)::uuid || '-1'",
    "status": "'settled'",
    "amount": "125000",
    "currency": "'IDR'",
    "channel": "'qris'",
    "occurred_at": "{at}",
    "payload": "jsonb_build_object('transaction_status', 'settlement', 'payment_type', 'qris')",
    "received_at": "{at}",
    "payment_id": "md5('payment' || n)::uuid",
    "outcome": "'applied'",
    "reason": "''",
    "decided_at": "{at}",
}
_EVENT: Columns = {
    "event_id": "md5(CASE WHEN n % 2 = 0 THEN 'placed' ELSE 'paid' END || n / 2)::uuid::text",
    "event_type": "CASE WHEN n % 2 = 0 THEN 'order.confirmed' ELSE 'payment.processed' END",
    "order_id": "md5('order' || n / 2)::uuid::text",
    "payload": "jsonb_build_object('order_id', md5('order' || n / 2)::uuid, 'user_id', 'guest',"
    " 'amount_rupiah', 125000, 'created_at', {at})",
    "created_at": "{at}",
}
_OUTBOX: Columns = _EVENT | {
    "sent_at": "{at}",
    "send_attempts": "1",
    "next_attempt_at": "{at}",
    "last_error": "''",
}
_PROCESSED: Columns = _EVENT | {
    "payment_id": "CASE WHEN n % 2 = 0 THEN '' ELSE md5('payment' || n / 2)::uuid::text END",
    "status": "'done'",
    "payload_hash": "md5('hash' || n) || md5('payload' || n)",
    "attempts": "1",
    "receive_count": "1",
    "fence": "1",
    "worker": "'worker@bench'",
    "last_error": "''",
    "first_claimed_at": "{at}",
    "claimed_at": "{at}",
    "effects_at": "{at}",
    "finished_at": "{at}",
}
TABLES: tuple[tuple[str, Columns, bool], ...] = (
    ("orders_order", _ORDER, False),
    ("orders_orderline", _LINE, False),
    ("orders_ordertransition", _TRANSITION, False),
    ("orders_stockmovement", _MOVEMENT, True),
    ("orders_checkoutrequest", _CHECKOUT_REQUEST, False),
    ("payments_payment", _PAYMENT, False),
    ("payments_paymentnotification", _NOTIFICATION, False),
    ("events_outboxevent", _OUTBOX, True),
    ("events_processedevent", _PROCESSED, True),
)
"""Name, columns, and whether it has a row for each event or for each order, of two events."""


def fill(connection: Connection, *, events: int) -> None:
    """Insert that many finished events, and the orders that they belong to."""
    # Foreign keys and triggers are not asked: all rows fit together by their making.
    connection.execute("SET session_replication_role = replica")
    for table, columns, per_event in TABLES:
        say(f"{events} events: filling {table}")
        there = connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s", [table]
        )
        names = [row[0] for row in there if row[0] in columns]
        count = events if per_event else events // 2
        # Fifteen seconds between two orders: two million events fill half a year.
        at = f"now() - interval '15 s' * ({count} - n) * {0.5 if per_event else 1.0}"
        values = ", ".join(columns[name].format(at=at) for name in names)
        connection.execute(
            sql.SQL("INSERT INTO {} ({}) SELECT {} FROM generate_series(1, {}) AS n").format(
                sql.Identifier(table),
                sql.SQL(", ").join(map(sql.Identifier, names)),
                sql.SQL(values),  # constants of this file
                sql.Literal(count),
            )
        )
    connection.execute("RESET session_replication_role")
    connection.execute("VACUUM ANALYZE")


Times = dict[str, tuple[list[float], list[float]]]
"""Milliseconds by what is done: in the empty shop, and in the full one."""


class LargeTables:
    """Only this checkout is measured: the question is how it bears its own data.

    The two shops are measured in turns, so that what else happens on the machine meets both.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._shops: tuple[Shop, Shop] | None = None
        self._tables: list[Table] = []

    def measure(self, subject: Subject) -> None:
        if subject is not HERE:
            return
        bench, numbers = self.bench, self.bench.numbers
        if self._shops is None:
            self._shops = bench.shop(subject), bench.shop(subject)
            for shop, events in zip(self._shops, (FEW_EVENTS, bench.rows), strict=True):
                with shop.connect() as connection:
                    fill(connection, events=events)
        with ExitStack() as stack:
            say("measuring the paths")
            ports = [stack.enter_context(shop.web()) for shop in self._shops]
            paths = self._paths(ports)
            say("measuring the operator's pages")
            pages = self._pages(ports)
        for what, times in paths.items():
            numbers.add(subject.name, f"{what}, large ÷ empty", _growth(times))
        worst = sorted(pages, key=lambda page: -_growth(pages[page]))
        growth = _growth(pages[worst[0]])
        numbers.add(subject.name, "operator's pages, large ÷ empty at most", growth)
        head = ["", "ms, empty", "ms, large", "ratio"]
        self._tables = [
            Table(f"With {bench.rows:,} events in the tables (warm, one client, medians)", head),
            Table(f"The operator's pages: the {SHOWN} of {len(pages)} that grew most", head),
        ]
        for table, measured, names in (
            (self._tables[0], paths, list(paths)),
            (self._tables[1], pages, worst[:SHOWN]),
        ):
            for name in names:
                few, many = map(statistics.median, measured[name])
                table.rows.append([name, f"{few:.2f}", f"{many:.2f}", f"{many / few:.2f}"])

    def tables(self) -> list[Table]:
        return self._tables

    def _paths(self, ports: Sequence[int]) -> Times:
        assert self._shops
        repeats = self.bench.size(PATH_REPEATS, small=5)
        times: Times = {}
        for _ in range(self.bench.size(PATH_TURNS, small=1)):
            for which, (shop, port) in enumerate(zip(self._shops, ports, strict=True)):
                medians = inside(shop, "measure", str(repeats))
                orders = load.run(
                    port, checkouts(shop.skus(), repeats, method="midtrans"), clients=1, wanted=201
                )
                placed = [answer.json() for answer in orders.answers]
                webhooks = load.run(port, settlements(shop, placed), clients=1, wanted=200)
                for what, median in {
                    "checkout": orders.p50,
                    "webhook": webhooks.p50,
                    **medians,
                }.items():
                    times.setdefault(what, ([], []))[which].append(median)
        return times

    def _pages(self, ports: Sequence[int]) -> Times:
        """Each list, each search in it and each of its filters."""
        assert self._shops
        words = _words(self._shops[1])
        operators = [_Operator(shop, port) for shop, port in zip(self._shops, ports, strict=True)]
        times: Times = {}

        def look(path: str) -> str:
            page = ""
            for turn in range(self.bench.size(PAGE_REPEATS, small=1) + 1):
                for which, operator in enumerate(operators):
                    page, milliseconds = operator.look(path)
                    if turn:  # the first one warms up
                        times.setdefault(_name(path, words), ([], []))[which].append(milliseconds)
            return page

        with ExitStack() as stack:
            for operator in operators:
                stack.callback(operator.close)
            for path in PAGES:
                look(path)
            for name in LISTS:
                page = look(f"/admin/{name}/")
                for word in words.values():
                    look(f"/admin/{name}/?q={quote(word)}")
                for query in sorted(set(re.findall(r'href="(\?[^"]+)"', page))):
                    if not re.search(r"[?&;](o|p|e|all|q)=", query):  # sorting and paging
                        look(f"/admin/{name}/{unescape(query)}")
        return times


class _Operator:
    """Somebody who is signed in and looks at pages."""

    def __init__(self, shop: Shop, port: int) -> None:
        self._client = load.Client(port)
        self._cookie = f"sessionid={inside(shop, 'session')}"

    def look(self, path: str) -> tuple[str, float]:
        """The page, and how many milliseconds it took."""
        answer = self._client.send(load.get(path, Cookie=self._cookie))
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {answer.body[:200]!r}")
        return answer.body.decode(), answer.seconds * 1000

    def close(self) -> None:
        self._client.close()


def _growth(times: tuple[list[float], list[float]]) -> float:
    few, many = map(statistics.median, times)
    return many / few


def _words(shop: Shop) -> dict[str, str]:
    """What an operator may search for, of an order that both shops have."""
    with shop.connect() as connection:
        row = connection.execute(
            "SELECT o.number, o.id::text, p.id::text, e.event_id, p.transaction_id"
            " FROM orders_order o JOIN payments_payment p ON p.order_id = o.id"
            " JOIN events_processedevent e ON e.payment_id = p.id::text"
            " WHERE o.number = 'SKN-BENCH-50'"
        ).fetchone()
    assert row
    kinds = ("number", "order id", "payment id", "event id", "transaction id")
    return dict(zip(kinds, map(str, row), strict=True)) | {"nothing": "no-such-thing"}


def _name(path: str, words: dict[str, str]) -> str:
    """The path, with the kind of a search's word instead of the word, and no dates."""
    for kind, word in words.items():
        path = path.replace(f"?q={quote(word)}", f"?q=<{kind}>")
    return re.sub(r"\d{4}-\d\d-\d\d[^&]*", "<day>", path)


def inside(shop: Shop, *arguments: str) -> Any:
    """Run tests.bench.inside in the shop's own environment; return what it prints."""
    done = subprocess.run(
        [shop.subject.python, "-m", "tests.bench.inside", *arguments],
        cwd=shop.subject.root,
        env=shop.environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
