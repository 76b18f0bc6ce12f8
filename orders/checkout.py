"""Checkout: one transaction that reserves the stock and makes the order, its payment and its event.

Nothing slow happens here: no queue, no email, no search index, no gateway.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from psycopg.errors import UniqueViolation

from orders import payment_methods, stock
from orders.email_addresses import mailable
from orders.exceptions import (
    CheckoutRefused,
    DuplicateSku,
    EmptyCart,
    NotEnoughStock,
    QuantityOutOfRange,
    TooManyLines,
    UnknownPaymentMethod,
    UnknownSku,
)
from orders.hoarding import check_unpaid, network_hash, read_products
from orders.idempotency import check_key, claim_key, scope_of
from orders.models import GUEST, SKU_PATTERN, Order, OrderLine
from orders.order_numbers import new_order_number
from orders.rows import insert
from orders.sentences import Sentence
from skincare.events.outbox import publish
from skincare.events.schema import ORDER_CONFIRMED, Event, new_event_id
from skincare.telemetry import metrics

log = structlog.get_logger(__name__)

_TRIES: Final = 5


@dataclass(frozen=True)
class Item:
    """One wish of a cart: `quantity` pieces of the product `sku`."""

    sku: str
    quantity: int


@dataclass(frozen=True)
class Placed:
    """The answer to a checkout, as it was when the order was made."""

    order_id: str
    number: str
    status: str
    payment_method: str
    total_rupiah: int


def place_order(
    *,
    items: Sequence[Item],
    email: str,
    payment_method: str,
    idempotency_key: str | None,
    user_id: str = GUEST,
    language: str = Order.Language.INDONESIAN,
    address: str = "",
) -> Placed:
    """Make one order for `items`, or return the answer that this idempotency key got before.

    The stock is reserved, the payment opened and `order.confirmed` put into the outbox in the same
    transaction. Raises a `CheckoutRefused` that says which field breaks which rule; nothing is
    changed then.
    """
    key = check_key(idempotency_key)
    body = {
        "items": [asdict(item) for item in items],
        "email": email,
        "payment_method": payment_method,
        "language": language,
    }
    for tries_left in reversed(range(_TRIES)):
        try:
            placed, is_new = _place(
                items=items,
                email=email,
                payment_method=payment_method,
                user_id=user_id,
                language=language,
                address=address,
                key=key,
                body=body,
            )
        except IntegrityError as error:
            if not _is_taken(error) or not tries_left:
                raise
        else:
            break
    if is_new:
        log.info("order_placed", order_id=placed.order_id, total_rupiah=placed.total_rupiah)
    return placed


@transaction.atomic
def _place(
    *,
    items: Sequence[Item],
    email: str,
    payment_method: str,
    user_id: str,
    language: str,
    address: str,
    key: str,
    body: dict[str, Any],
) -> tuple[Placed, bool]:
    """Return the answer, and whether an order was made for it now.

    The rules are looked at first, but a refusal waits for the key: a repeat gets its answer even
    where the rules have changed since. The stock comes last, so that its rows are locked shortly.
    """
    order = Order(
        id=uuid4(),
        email=email,
        user_id=user_id,
        language=language,
        network_hash=network_hash(address),
        total_rupiah=0,
        expires_at=timezone.now() + timedelta(minutes=settings.ORDER_WINDOW_MINUTES),
    )
    order.number = new_order_number(order.created_at)
    lines: list[OrderLine] = []
    refusal = None
    try:
        _check_cart(items)
        order.email = mailable(email)
        if payment_method not in payment_methods.enabled():
            raise UnknownPaymentMethod(payment_methods.enabled())
        lines = _lines_of(order, items)
        order.total_rupiah = sum(line.amount_rupiah for line in lines)
        order.payment_method = payment_method if order.total_rupiah else payment_methods.FREE
    except CheckoutRefused as error:
        refusal = error
    placed = Placed(
        order_id=str(order.pk),
        number=order.number,
        status=order.status,
        payment_method=order.payment_method,
        total_rupiah=order.total_rupiah,
    )
    known = claim_key(
        scope=scope_of(user_id, order.email),
        key=key,
        body=body,
        order_id=order.pk,
        response=asdict(placed),
    )
    if known is not None:
        return Placed(**known.response), False
    if refusal is not None:
        raise refusal
    check_unpaid(order, lines)
    _make(order, lines)
    metrics.count("OrdersCreated", provider=order.payment_method)
    return placed, True


def _make(order: Order, lines: Sequence[OrderLine]) -> None:
    """Write the order, its event and its payment, and take its stock. Raises `NotEnoughStock`."""
    insert(order)
    insert(*lines)
    event = _order_confirmed(order)
    publish(event)
    payment_methods.get(order.payment_method).open(order)
    wanted = {line.product_id: line.quantity for line in lines}
    _check_stock(lines, stock.reserve(wanted, event_id=event.event_id, order_id=order.pk))


def _is_taken(error: IntegrityError) -> bool:
    """Whether another checkout has the order's number, or the key: the next try finds that out.

    Claiming a key ends so only while a migration builds another unique index on keys: ON CONFLICT
    sees what an index that is not valid yet refuses no sooner than this.
    """
    cause = error.__cause__
    constraint = cause.diag.constraint_name if isinstance(cause, UniqueViolation) else None
    return (constraint or "").startswith(("orders_order_number", "checkout_request_"))


def _check_cart(items: Sequence[Item]) -> None:
    if not items:
        raise EmptyCart(
            Sentence("must have at least one item", "harus berisi setidaknya satu barang")
        )
    if len(items) > settings.CHECKOUT_MAX_LINES:
        raise TooManyLines(
            Sentence(
                "must have at most {most} items",
                "paling banyak berisi {most} barang",
                most=settings.CHECKOUT_MAX_LINES,
            )
        )
    first_at: dict[str, int] = {}
    for index, item in enumerate(items):
        if not 1 <= item.quantity <= settings.CHECKOUT_MAX_QUANTITY:
            raise QuantityOutOfRange(
                Sentence(
                    "must be 1 to {most}",
                    "harus 1 sampai {most}",
                    most=settings.CHECKOUT_MAX_QUANTITY,
                ),
                field=f"items[{index}].quantity",
            )
        first = first_at.setdefault(item.sku, index)
        if first != index:
            raise DuplicateSku(
                Sentence(
                    "is in items[{first}] too: put all pieces of a product into one item",
                    "juga ada di items[{first}]: gabungkan satu produk dalam satu baris",
                    first=first,
                ),
                field=f"items[{index}].sku",
            )


def _lines_of(order: Order, items: Sequence[Item]) -> list[OrderLine]:
    """Return the order's lines, not saved. Raises `UnknownSku` and `NotEnoughStock`."""
    # PostgreSQL takes no NUL, so what cannot be a sku is not asked for.
    skus = [item.sku for item in items if re.match(SKU_PATTERN, item.sku)]
    # Not locked: whether there is enough is decided when the stock is taken.
    products = {one.sku: one for one in read_products(order, skus)}
    for index, item in enumerate(items):
        if item.sku not in products:
            raise UnknownSku(
                Sentence("is not a product that we sell", "bukan produk yang kami jual"),
                field=f"items[{index}].sku",
            )
    lines = [
        OrderLine(
            order=order,
            product=products[item.sku],
            sku=item.sku,
            name=products[item.sku].name,
            quantity=item.quantity,
            unit_price_rupiah=products[item.sku].price_rupiah,
        )
        for item in items
    ]
    # What is sold out already need not be tried.
    wanted = {line.product_id: line.quantity for line in lines}
    levels = stock.levels_of({product.pk: product for product in products.values()})
    _check_stock(lines, stock.shortages(wanted, levels))
    return lines


def _check_stock(lines: Sequence[OrderLine], shortages: Sequence[stock.Shortage]) -> None:
    """Raise `NotEnoughStock` for the first line of which there is not enough."""
    short = {shortage.product_id: shortage for shortage in shortages}
    for index, line in enumerate(lines):
        if shortage := short.get(line.product_id):
            left = shortage.available
            raise NotEnoughStock(
                Sentence(
                    "must be at most {left}, that is all we have",
                    "paling banyak {left}, hanya itu yang tersisa",
                    left=left,
                )
                if left
                else Sentence("none is left", "sudah habis"),
                field=f"items[{index}].quantity",
            )


def _order_confirmed(order: Order) -> Event:
    return Event(
        event_id=new_event_id(ORDER_CONFIRMED, str(order.pk)),
        event_type=ORDER_CONFIRMED,
        order_id=str(order.pk),
        payment_id="",
        user_id=order.user_id,
        amount_rupiah=order.total_rupiah,
        created_at=timezone.localtime(order.created_at).isoformat(),
    )
