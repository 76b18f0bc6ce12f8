"""What became of it all, read from outside: the database, the emails, the queues."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, LiteralString

from skincare.events.schema import new_event_id
from skincare.sqs.queues import depth
from tests.chaos.buyers import Bought
from tests.chaos.shop import STOCK, WORKERS, Shop

EVENTS_OF_AN_ORDER = 2
"""order.confirmed, and payment.processed or payment.failed."""
EMAILS_OF_AN_ORDER = 2
"""The confirmation, and the receipt or the news that the payment failed."""


@dataclass
class Verdict:
    """Lists of what is wrong, and counts for the table."""

    events: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    wrong_on_the_shelf: list[str] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)
    emails: int = 0
    emails_missing: list[str] = field(default_factory=list)
    emails_repeated: int = 0
    emails_unexplained: list[str] = field(default_factory=list)
    claims_put_off: int = 0
    claims_taken_over: int = 0
    dead: dict[str, str] = field(default_factory=dict)
    receive_counts: dict[int, int] = field(default_factory=dict)
    seconds_to_done: tuple[float, float] = (0.0, 0.0)


def at_rest(shop: Shop) -> bool:
    """Whether nothing is on its way any more: no event unsent, no message on the queue."""
    unsent = _number(shop, "SELECT count(*) FROM events_outboxevent WHERE sent_at IS NULL")
    return unsent == 0 and sum(depth(shop.client, shop.queue_url)) == 0


def judge(shop: Shop, bought: list[Bought]) -> Verdict:
    """Compares what buyers were told with what is there now."""
    verdict = Verdict(events=_number(shop, "SELECT count(*) FROM events_outboxevent"))
    verdict.lost = _lost(shop, bought)
    verdict.twice = _twice(shop)
    verdict.wrong_on_the_shelf = _wrong_on_the_shelf(shop, bought)
    verdict.disagreements = _disagreements(shop)
    emails = Counter((email["To"], email["Message-ID"]) for email in shop.mail.taken)
    verdict.emails = emails.total()
    verdict.emails_repeated = emails.total() - len(emails)
    put_offs = _put_offs(shop)
    verdict.claims_put_off = put_offs.total()
    verdict.claims_taken_over = (
        _number(shop, "SELECT coalesce(sum(attempts - 1), 0) FROM events_processedevent")
        - verdict.claims_put_off
    )
    verdict.emails_unexplained = _unexplained(
        shop, Counter(_event_email(i) for _, i in emails.elements()), put_offs
    )
    received = Counter(address for address, _ in emails)
    verdict.emails_missing = [
        f"{order.email} got {received[order.email]} emails, not {EMAILS_OF_AN_ORDER}"
        for order in bought
        if received[order.email] != EMAILS_OF_AN_ORDER
    ]
    verdict.dead = _dead(shop)
    verdict.receive_counts = dict(
        _rows(
            shop,
            "SELECT receive_count, count(*)::int FROM events_processedevent"
            " WHERE status = 'done' GROUP BY 1 ORDER BY 1",
        )
    )
    verdict.seconds_to_done = _rows(
        shop,
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds),"
        " percentile_cont(0.99) WITHIN GROUP (ORDER BY seconds) FROM"
        " (SELECT extract(epoch FROM p.finished_at - o.created_at)::float AS seconds"
        "  FROM events_outboxevent o JOIN events_processedevent p USING (event_id)) AS done",
    )[0]
    return verdict


def _lost(shop: Shop, bought: list[Bought]) -> list[str]:
    """Events that are not done, and orders that are not where their payment puts them."""
    lost = [
        f"event {event_id} is {status or 'never claimed'}"
        for event_id, status in _rows(
            shop,
            "SELECT event_id, p.status FROM events_outboxevent o"
            " LEFT JOIN events_processedevent p USING (event_id)"
            " WHERE p.status IS NULL OR p.status NOT IN ('done', 'skipped')",
        )
    ]
    status = {str(pk): now for pk, now in _rows(shop, "SELECT id, status FROM orders_order")}
    lost += [
        f"order {order.order_id} is {status.get(order.order_id)}, not {order.ending}"
        for order in bought
        if status.get(order.order_id) != order.ending
    ]
    events = _number(shop, "SELECT count(*) FROM events_outboxevent")
    if events != EVENTS_OF_AN_ORDER * len(bought):
        lost.append(f"{events} events for {len(bought)} orders, not {EVENTS_OF_AN_ORDER} each")
    return lost


def _twice(shop: Shop) -> list[str]:
    """Effects that were done twice, by the ledger of the stock and the history of the orders."""
    ledger = [
        f"order {order_id}: {kind} of product {product_id} {times} times"
        for order_id, product_id, kind, times in _rows(
            shop,
            "SELECT order_id, product_id, kind, count(*) FROM orders_stockmovement"
            " WHERE order_id IS NOT NULL GROUP BY 1, 2, 3 HAVING count(*) > 1",
        )
    ]
    history = [
        f"order {order_id} became {status} {times} times"
        for order_id, status, times in _rows(
            shop,
            "SELECT order_id, to_status, count(*) FROM orders_ordertransition"
            " WHERE from_status <> to_status GROUP BY 1, 2 HAVING count(*) > 1",
        )
    ]
    return ledger + history


def _wrong_on_the_shelf(shop: Shop, bought: list[Bought]) -> list[str]:
    """Products whose numbers are not what the buyers' orders leave of the first stock."""
    sold: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    for order in bought:
        (sold if order.ending == "paid" else waiting).update(order.quantities)
    return [
        f"{sku}: {stock} on the shelf and {reserved} reserved, not {STOCK - sold[sku]} and "
        f"{waiting[sku]}"
        for sku, stock, reserved in _rows(shop, "SELECT sku, stock, reserved FROM orders_product")
        if (stock, reserved) != (STOCK - sold[sku], waiting[sku])
    ]


def _disagreements(shop: Shop) -> list[str]:
    """What the shop's own check of all money finds."""
    said = shop.check_money().splitlines()
    return [line for line in said if not line.startswith("{") and line != "0 disagreements"]


def _event_email(message_id: str) -> str:
    """`<5f….receipt@shop>` → `5f…`, which stands for the event."""
    return message_id.strip("<").partition(".")[0]


def _put_offs(shop: Shop) -> Counter[str]:
    """How often each event was put off, by the workers' logs. Such a claim ended without an email,
    and the next one took nothing over. A line that is missing, because its process was killed right
    after the commit, makes the bounds one wider."""
    lines = [
        json.loads(line)
        for number in range(WORKERS)
        for line in shop.worker_log(number).read_text(errors="replace").splitlines()
        if line.startswith("{") and line.endswith("}") and '"event_put_off"' in line
    ]
    return Counter(line["event_id"] for line in lines if line["event"] == "event_put_off")


def _unexplained(shop: Shop, sent: Counter[str], put_offs: Counter[str]) -> list[str]:
    """Emails that no death explains: an event's email can only be sent once for each claim that was
    not put off, and there is another such claim only where the one before was cut off, or failed,
    ahead of "done"."""
    return [
        f"{times} emails for event {event_id}, which was claimed {attempts} times and put off "
        f"{put_offs[event_id]} times"
        for event_id, attempts in _rows(
            shop, "SELECT event_id, attempts FROM events_processedevent"
        )
        if (times := sent[new_event_id("email", event_id)]) > attempts - put_offs[event_id]
    ]


def _dead(shop: Shop) -> dict[str, str]:
    """Message ids and bodies of all that is in the dead-letter queue."""
    dead: dict[str, str] = {}
    while found := shop.client.receive_message(
        QueueUrl=shop.dlq_url, MaxNumberOfMessages=10, WaitTimeSeconds=0
    ).get("Messages"):
        dead |= {message["MessageId"]: message["Body"] for message in found}
    return dead


def _rows(shop: Shop, query: LiteralString) -> list[Any]:
    with shop.connect() as connection:
        return connection.execute(query).fetchall()


def _number(shop: Shop, query: LiteralString) -> int:
    return int(_rows(shop, query)[0][0])
