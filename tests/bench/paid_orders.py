"""Orders for the shop's handler: placed over HTTP, paid at once, and not processed yet.

They are made once for a subject. Each worker gets a copy of the whole database, so all do the same
work.
"""

from dataclasses import dataclass

from tests.bench import load
from tests.bench.server import BenchServer
from tests.bench.shop import CLIENTS, Shop, checkouts
from tests.bench.work import Document

METHOD = "sandbox"  # settles at checkout, without a gateway


@dataclass(frozen=True)
class PaidOrders:
    """A database to copy, and the events of the orders in it."""

    database_url: str
    events: list[Document]


def place(shop: Shop, server: BenchServer, count: int) -> PaidOrders:
    """Place and settle the orders; their events are read from the outbox, and nobody sends them."""
    server.set_health("refusing")
    try:
        with shop.web() as port:
            requests = checkouts(shop.skus(), count, method=METHOD)
            load.run(port, requests, clients=CLIENTS, wanted=201)
    finally:
        server.set_health("healthy")
    with shop.connect() as connection:
        rows = connection.execute(
            "SELECT payload FROM events_outboxevent WHERE event_type = 'payment.processed'"
            " ORDER BY id"
        )
        events: list[Document] = [row[0] for row in rows]
        connection.execute("UPDATE events_outboxevent SET sent_at = now()")
    if len(events) != count:
        raise RuntimeError(f"{count} orders gave {len(events)} events")
    return PaidOrders(shop.database_url, events)
