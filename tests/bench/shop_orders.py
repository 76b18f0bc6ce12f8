"""Orders for the shop's handler: placed by the real checkout, paid, and not processed yet."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from tests.bench.work import Document

STOCK = 1_000_000
EMAIL = "pembeli@skincare.example"


@contextmanager
def shop() -> Iterator[dict[str, str]]:
    """A PostgreSQL server with the shop's tables and catalogue; what a worker's environment needs.

    To be entered once: Django takes its database from here.
    """
    import django
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connections
    from environ import Env

    from skincare.local.postgres import database

    with database() as url:
        django.setup()
        connections.settings["default"].update(Env.db_url_config(url))
        settings.LOG_LEVEL = "WARNING"
        call_command("migrate", verbosity=0)
        call_command("seed_catalogue", verbosity=0)
        from orders.models import Product

        Product.objects.update(stock=STOCK)
        try:
            yield {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        finally:
            connections.close_all()


def paid_orders(count: int) -> list[Document]:
    """Place and settle so many orders of two products each; return their events, not sent yet."""
    from orders.checkout import Item, place_order
    from orders.models import Product
    from payments.providers.sandbox import SANDBOX
    from skincare.events.models import OutboxEvent
    from skincare.events.schema import PAYMENT_PROCESSED

    skus = list(Product.objects.values_list("sku", flat=True))
    placed = [
        place_order(
            items=[
                Item(skus[number % len(skus)], 1),
                Item(skus[(number + 1) % len(skus)], 1),
            ],
            email=EMAIL,
            payment_method=SANDBOX,
            idempotency_key=str(uuid4()),
        ).order_id
        for number in range(count)
    ]
    payloads = OutboxEvent.objects.filter(order_id__in=placed, event_type=PAYMENT_PROCESSED)
    documents = list(payloads.values_list("payload", flat=True))
    if len(documents) != count:
        raise RuntimeError(f"{count} orders gave {len(documents)} {PAYMENT_PROCESSED} events")
    return documents
