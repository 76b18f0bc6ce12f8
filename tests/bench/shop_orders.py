"""Orders for the shop's handler: placed by the real checkout, paid, and not processed yet.

They are made once. Each contestant gets a copy of the whole database, so all do the same work.
"""

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from skincare.local.postgres import PostgresServer
from tests.bench.work import Document

STOCK = 1_000_000
EMAIL = "pembeli@skincare.example"
TEMPLATE = "bench"


class Shop:
    """A database server, and the events of the orders in each of its copies."""

    def __init__(self, server: PostgresServer, events: list[Document]) -> None:
        self._server = server
        self.events = events

    def copy(self) -> dict[str, str]:
        """Make another database; return what its worker needs in the environment."""
        name = f"bench_{uuid4().hex[:12]}"
        with psycopg.connect(self._server.url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                    sql.Identifier(name), sql.Identifier(TEMPLATE)
                )
            )
        return {"DATABASE_URL": with_database(self._server.url, name)}


@contextmanager
def shop(orders: int) -> Iterator[Shop]:
    """The shop with its catalogue and so many paid orders of two products each.

    To be entered once in a process: Django takes its database from here.
    """
    import django
    from django.core.management import call_command
    from django.db import connections
    from environ import Env

    with PostgresServer() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
        with redirect_stdout(StringIO()):  # the shop's log is not the benchmark's
            django.setup()
            connections.settings["default"].update(
                Env.db_url_config(with_database(server.url, TEMPLATE))
            )
            call_command("migrate", verbosity=0)
            call_command("seed_catalogue", verbosity=0)
            events = place(orders)
        connections.close_all()  # a database that is in use cannot be copied
        yield Shop(server, events)


def place(orders: int) -> list[Document]:
    """Place and settle the orders; return their events, which nobody has sent."""
    from orders.checkout import Item, place_order
    from orders.models import Product
    from payments.providers.sandbox import SANDBOX
    from skincare.events.models import OutboxEvent
    from skincare.events.schema import PAYMENT_PROCESSED

    Product.objects.update(stock=STOCK)
    skus = list(Product.objects.values_list("sku", flat=True))
    for number in range(orders):
        place_order(
            items=[Item(skus[(number + more) % len(skus)], 1) for more in (0, 1)],
            email=EMAIL,
            payment_method=SANDBOX,
            idempotency_key=str(uuid4()),
        )
    settled = OutboxEvent.objects.filter(event_type=PAYMENT_PROCESSED)
    events: list[Document] = list(settled.values_list("payload", flat=True))
    if len(events) != orders:
        raise RuntimeError(f"{orders} orders gave {len(events)} {PAYMENT_PROCESSED} events")
    return events


def with_database(url: str, name: str) -> str:
    """The same server's URL for another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
