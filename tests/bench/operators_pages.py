"""All pages that an operator opens: each list with its searches, filters, columns and ends."""

import re
from collections.abc import Callable, Iterator, Mapping
from html import unescape
from urllib.parse import quote

from tests.bench.shop import Connection

PAGES = (
    *("/admin/", "/admin/operations/", "/admin/operations/held/", "/admin/operations/goods/"),
    *("/admin/operations/dead-letters/", "/admin/admin/logentry/"),
)
LISTS = (
    *("orders/order", "orders/orderline", "orders/ordertransition", "orders/stockmovement"),
    *("orders/checkoutrequest", "orders/product"),
    *("payments/payment", "payments/paymentnotification", "payments/paymentrefund"),
    *("payments/hold", "payments/refundrequest", "payments/acceptance"),
    *("events/outboxevent", "events/processedevent"),
)

Look = Callable[[str], str]
"""Opens the page of a path, and returns its HTML."""


def look_at_all(look: Look, words: Mapping[str, str]) -> None:
    """Open all of them. `words` are what is searched for, by their kind."""
    for path in (*PAGES, *_pages_of(words)):
        look(path)
    for name in LISTS:
        page = look(f"/admin/{name}/")
        for query in _queries(page):
            look(f"/admin/{name}/{query}")
        found = [look(f"/admin/{name}/?q={quote(word)}") for word in words.values()]
        # A row of the order that is searched for, so that two shops have it alike.
        if row := re.search(rf'href="(/admin/{name}/[^"/]+/)change/', "".join(found)):
            look(f"{row[1]}change/")
            look(f"{row[1]}history/")


def words_of(connection: Connection) -> dict[str, str]:
    """What an operator may search for, of an order of `large_rows` that is in every shop."""
    row = connection.execute(
        "SELECT o.number, o.id::text, p.id::text, e.event_id, p.transaction_id"
        " FROM orders_order o JOIN payments_payment p ON p.order_id = o.id"
        " JOIN events_processedevent e ON e.payment_id = p.id::text"
        " WHERE o.number = 'SKN-BENCH-50'"
    ).fetchone()
    assert row
    kinds = ("number", "order id", "payment id", "event id", "transaction id")
    return dict(zip(kinds, map(str, row), strict=True)) | {"nothing": "no-such-thing"}


def _pages_of(words: Mapping[str, str]) -> Iterator[str]:
    order, payment = words["order id"], words["payment id"]
    yield f"/admin/operations/events/{words['event id']}/"
    yield f"/admin/operations/orders/{order}/shipping/"
    yield f"/admin/operations/held/orders/{order}/"
    yield f"/admin/operations/held/payments/{payment}/"
    yield f"/admin/operations/payments/{payment}/refund/"
    yield f"/admin/payments/payment/?order__id__exact={order}"
    yield f"/admin/payments/paymentnotification/?payment__id__exact={payment}"
    yield f"/admin/payments/paymentrefund/?payment__id__exact={payment}"
    yield f"/admin/payments/hold/?order__id__exact={order}"


def _queries(page: str) -> list[str]:
    """What the page of a list links to in it: filters, columns to sort by, its last page."""
    queries = {unescape(query) for query in re.findall(r'href="(\?[^"]+)"', page)}
    pages = {query for query in queries if re.search(r"[?&]p=", query)}
    kept = {query for query in queries - pages if not re.search(r"[?&](e|all|q)=", query)}
    if pages:
        kept |= {"?p=2", f"?p={max(int(query.rpartition('=')[2]) for query in pages)}"}
    return sorted(kept)
