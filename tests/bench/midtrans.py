"""Webhooks of Midtrans for orders that were placed over HTTP."""

from collections.abc import Sequence
from typing import Any

from skincare.local.outsiders import Midtrans
from tests.bench import load
from tests.bench.shop import SERVER_KEY, Shop

_HAS_REFERENCE = """
SELECT EXISTS (SELECT FROM information_schema.columns
               WHERE table_name = 'payments_payment' AND column_name = 'reference')
"""


def settlements(shop: Shop, orders: Sequence[dict[str, Any]]) -> list[bytes]:
    """A notification for each of these answers to a checkout: it is paid."""
    references = _references(shop)
    gateway = Midtrans("", server_key=SERVER_KEY)
    return [
        load.post(
            "/v1/webhooks/midtrans",
            gateway.notification(
                {**order, "order_id": references.get(order["order_id"], order["order_id"])},
                "settlement",
                "200",
            ),
        )
        for order in orders
    ]


def _references(shop: Shop) -> dict[str, str]:
    """What the gateway calls the payment of an order, where that is not the order's id."""
    with shop.connect() as connection:
        if connection.execute(_HAS_REFERENCE).fetchone() != (True,):
            return {}
        rows = connection.execute("SELECT order_id::text, reference FROM payments_payment")
        return {order_id: reference for order_id, reference in rows if reference}
