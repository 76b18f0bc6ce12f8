"""How much one buyer may have set aside without paying, so that nobody can empty the shop.

A buyer is a mailbox (whatever the case of its letters, and what follows a plus), or the session of
somebody who is signed in (the subject of the token), or a network address; behind the last may be a
whole mobile network, so it may have more. A guest has no session: a token of the shop's own could
be thrown away as easily as it is got. What cost nothing counts for a day.
"""

import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from django.conf import settings
from django.db import connection

from orders import rows
from orders.email_addresses import MAILBOX, mailbox
from orders.exceptions import TooManyUnpaid
from orders.models import GUEST, Order, OrderLine, Product
from orders.sentences import Sentence

#: Checkouts of one buyer, one after the other: two at once would each see the bound not reached.
#: In the order of the numbers, so that no two wait for each other.
_LOCK: Final = "SELECT pg_advisory_xact_lock(buyer) FROM unnest(%s::bigint[]) buyer"
#: One JSON array of [order, product, pieces, whether it is of this mailbox, session, network].
_UNPAID: Final = f"""
(SELECT jsonb_agg(jsonb_build_array(id, product, pieces, by_email, by_session, by_network)) FROM (
    SELECT o.id, l.product_id AS product, l.quantity AS pieces,
           {MAILBOX} = %s AS by_email,
           o.user_id = %s AND o.user_id <> '{GUEST}' AS by_session,
           o.network_hash = %s AND o.network_hash <> '' AS by_network
    FROM orders_order o JOIN orders_orderline l ON l.order_id = o.id
    WHERE (o.status = 'pending'
           OR (o.total_rupiah = 0 AND o.created_at > now() - interval '1 day'))
      AND ({MAILBOX} = %s
           OR (o.user_id = %s AND o.user_id <> '{GUEST}')
           OR (o.network_hash = %s AND o.network_hash <> ''))
    LIMIT 20000
) AS unpaid)
"""  # noqa: S608  (constants)
#: What checkout needs to know of a product; the rest of it is long.
_FOR_SALE: Final = ("id", "sku", "name", "price_rupiah", "stock", "reserved")
_READ: Final = (
    f"SELECT {_UNPAID}, {', '.join(_FOR_SALE)} FROM orders_product"  # noqa: S608  (constants)
    " WHERE is_active AND sku = ANY(%s)"
)


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

    An IPv6 address counts as its /64, which is what one subscriber has; one that stands for an
    IPv4 address (::ffff:203.0.113.7) counts as that, because all of those are in one /64.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return ""
    counted: object = parsed
    if isinstance(parsed, IPv6Address):
        counted = parsed.ipv4_mapped or ip_network((parsed, 64), strict=False)
    key = f"{settings.SECRET_KEY}:network".encode()
    return hmac.new(key, str(counted).encode(), hashlib.sha256).hexdigest()[:32]


def read_products(order: Order, skus: list[str]) -> list[Product]:
    """Return the products that are for sale, each with what the order's buyer has set aside.

    The buyer's next checkout waits for the end of this one's transaction from then on: the lock is
    taken in the same round trip, and before that looks.
    """
    if not settings.LIMIT_BUYERS:
        return rows.read(Product, "is_active AND sku = ANY(%s)", [skus], only=_FOR_SALE)
    buyer = [mailbox(order.email), order.user_id, order.network_hash]
    with connection.cursor() as cursor:
        cursor.execute(f"{_LOCK}; {_READ}", [_locks_of(order), *buyer, *buyer, skus])
        cursor.nextset()
        found = cursor.fetchall()
    products = []
    for unpaid, *values in found:
        product = Product.from_db(connection.alias, _FOR_SALE, values)
        product.unpaid = json.loads(unpaid) if unpaid else []  # type: ignore[attr-defined]
        products.append(product)
    return products


def check_unpaid(order: Order, lines: Sequence[OrderLine]) -> None:
    """Raise `TooManyUnpaid` where the order, not written yet, would pass its buyer's bounds.

    The products of its lines were read by `read_products`.
    """
    if not settings.LIMIT_BUYERS:
        return
    stock = {line.product_id: line.product.stock for line in lines}
    unpaid = lines[0].product.unpaid  # type: ignore[attr-defined]
    wanted = Counter({line.product_id: line.quantity for line in lines})
    for whose, bounds in (
        (3, settings.UNPAID_BY_EMAIL),  # the place in each row
        (4, settings.UNPAID_BY_SESSION),
        (5, settings.UNPAID_BY_NETWORK),
    ):
        if passes([row[:3] for row in unpaid if row[whose]], wanted, stock, Bounds(**bounds)):
            raise TooManyUnpaid(
                Sentence(
                    "too much is set aside for you and not paid: pay for it, or wait until it ends",
                    "terlalu banyak yang disisihkan untuk Anda dan belum dibayar: bayar dulu, atau "
                    "tunggu sampai habis waktunya",
                )
            )


def _locks_of(order: Order) -> list[int]:
    """Return the numbers of the locks of all that the buyer is, in ascending order."""
    buyers = [f"mailbox:{mailbox(order.email)}"]
    if order.user_id != GUEST:
        buyers.append(f"session:{order.user_id}")
    if order.network_hash:
        buyers.append(f"network:{order.network_hash}")
    digests = (hashlib.sha256(buyer.encode()).digest() for buyer in buyers)
    return sorted(int.from_bytes(digest[:8], signed=True) for digest in digests)


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
