"""How much one buyer may have set aside without paying, so that nobody can empty the shop.

A buyer is an email address, or a network address; behind the latter may be a whole mobile network,
so it may have more. Two checkouts at the same moment can together pass a bound by one order.
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from django.conf import settings
from django.db.models import JSONField, QuerySet
from django.db.models.expressions import RawSQL

from orders.exceptions import TooManyUnpaid
from orders.models import Order, OrderLine, Product
from orders.sentences import Sentence

#: One JSON array of [order, whether it has this email address, product, pieces].
_UNPAID: Final = """
(SELECT jsonb_agg(jsonb_build_array(id, is_own, product_id, quantity)) FROM (
    SELECT o.id, o.email = %s AS is_own, l.product_id, l.quantity
    FROM orders_order o JOIN orders_orderline l ON l.order_id = o.id
    WHERE o.status = 'pending'
      AND (o.email = %s OR (o.network_hash = %s AND o.network_hash <> ''))
    LIMIT 20000
) AS unpaid)
"""


@dataclass(frozen=True)
class Bounds:
    """What one buyer may have unpaid: orders, pieces, and the part of a product's stock."""

    orders: float
    pieces: float
    share: float
    #: So many pieces of a product are never too large a part of it.
    always: float = 10


def network_hash(address: str) -> str:
    """Return the stored form of a network address: a hash that only this shop can make, or "".

    An IPv6 address counts as its /64, which is what one subscriber has.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return ""
    text = str(
        ip_network((parsed, 64), strict=False) if isinstance(parsed, IPv6Address) else parsed
    )
    key = f"{settings.SECRET_KEY}:network".encode()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:32]


def with_unpaid(products: QuerySet[Product], order: Order) -> QuerySet[Product]:
    """Let the statement that reads an order's products read, too, what its buyer has set aside."""
    if not settings.LIMIT_BUYERS:
        return products
    values = [order.email, order.email, order.network_hash]
    return products.annotate(unpaid=RawSQL(_UNPAID, values, JSONField()))  # noqa: S611  (a constant)


def check_unpaid(order: Order, lines: Sequence[OrderLine]) -> None:
    """Raise `TooManyUnpaid` where the order, not written yet, would pass its buyer's bounds.

    The products of its lines were read by `with_unpaid`.
    """
    if not settings.LIMIT_BUYERS or not order.total_rupiah:
        return
    stock = {line.product_id: line.product.stock for line in lines}
    rows = getattr(lines[0].product, "unpaid", None) or []
    wanted = Counter({line.product_id: line.quantity for line in lines})
    own = [(order_id, product, pieces) for order_id, mine, product, pieces in rows if mine]
    everybody = [(order_id, product, pieces) for order_id, _, product, pieces in rows]
    for held, bounds in (
        (own, settings.UNPAID_BY_EMAIL),
        (everybody, settings.UNPAID_BY_NETWORK),
    ):
        if passes(held, wanted, stock, Bounds(**bounds)):
            raise TooManyUnpaid(
                Sentence(
                    "too much is set aside for you and not paid: pay for it, or wait until it ends",
                    "terlalu banyak yang disisihkan untuk Anda dan belum dibayar: bayar dulu, atau "
                    "tunggu sampai habis waktunya",
                )
            )


def passes(
    held: Sequence[tuple[object, int, int]],
    wanted: Mapping[int, int],
    stock: Mapping[int, int],
    bounds: Bounds,
) -> bool:
    """Return whether `wanted` pieces by product id, on top of what is held, pass the bounds.

    `held`: order, product id and pieces of each unpaid line.
    """
    orders = len({order for order, _, _ in held}) + 1
    by_product = Counter(dict(wanted))
    for _, product, pieces in held:
        by_product[product] += pieces
    return (
        orders > bounds.orders
        or by_product.total() > bounds.pieces
        or any(
            by_product[product] > max(bounds.always, bounds.share * stock[product])
            for product in wanted
        )
    )
