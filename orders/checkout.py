"""Checkout: one transaction that reserves the stock and makes the order, its payment and its event.

Nothing slow happens here: no queue, no email, no search index, no gateway.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final
from uuid import UUID, uuid4

import structlog
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone

from orders import payment_methods, stock
from orders.exceptions import (
    DuplicateSku,
    EmptyCart,
    InvalidEmail,
    NotEnoughStock,
    QuantityOutOfRange,
    TooManyLines,
    UnknownPaymentMethod,
    UnknownSku,
)
from orders.idempotency import check_key, claim_key
from orders.locks import lock_products
from orders.models import GUEST, SKU_PATTERN, Order, OrderLine, Product
from orders.order_numbers import new_order_number
from orders.sentences import Sentence
from skincare.events.outbox import publish
from skincare.events.schema import ORDER_CONFIRMED, Event, new_event_id
from skincare.telemetry import metrics

log = structlog.get_logger(__name__)

_NUMBER_DRAWS: Final = 5


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
    with transaction.atomic():
        request, is_new = claim_key(scope=user_id, key=key, body=body, order_id=uuid4())
        if not is_new:
            return Placed(**request.response)
        order = _make_order(
            request.order_id,
            items=items,
            email=email,
            payment_method=payment_method,
            user_id=user_id,
            language=language,
        )
        placed = Placed(
            order_id=str(order.pk),
            number=order.number,
            status=order.status,
            payment_method=order.payment_method,
            total_rupiah=order.total_rupiah,
        )
        request.response = asdict(placed)
        request.save(update_fields=["response"])
        metrics.count("OrdersCreated", provider=order.payment_method)
    log.info("order_placed", order_id=placed.order_id, total_rupiah=placed.total_rupiah)
    return placed


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


def _check_email(email: str) -> None:
    longest = Order._meta.get_field("email").max_length or 0
    try:
        validate_email(email)
    except ValidationError:
        raise InvalidEmail(
            Sentence("must be an email address", "harus berupa alamat surel")
        ) from None
    if len(email) > longest:
        raise InvalidEmail(
            Sentence(
                "must be at most {longest} characters",
                "paling panjang {longest} karakter",
                longest=longest,
            )
        )


def _make_order(
    order_id: UUID,
    *,
    items: Sequence[Item],
    email: str,
    payment_method: str,
    user_id: str,
    language: str,
) -> Order:
    # Checked after the key: a repeat gets its answer even where the rules have changed since.
    _check_cart(items)
    _check_email(email)
    if payment_method not in payment_methods.enabled():
        raise UnknownPaymentMethod(payment_methods.enabled())
    products = _lock_cart(items)
    total = sum(products[item.sku].price_rupiah * item.quantity for item in items)
    method = payment_methods.get(payment_method if total else payment_methods.FREE)
    order = _insert_order(
        Order(
            id=order_id,
            email=email,
            user_id=user_id,
            payment_method=method.name,
            language=language,
            total_rupiah=total,
            expires_at=timezone.now() + Order.longest_wait(),
        )
    )
    OrderLine.objects.bulk_create(
        OrderLine(
            order=order,
            product=products[item.sku],
            sku=item.sku,
            name=products[item.sku].name,
            quantity=item.quantity,
            unit_price_rupiah=products[item.sku].price_rupiah,
        )
        for item in items
    )
    event = _order_confirmed(order)
    stock.apply_movements(
        stock.plan_reserve({products[item.sku].pk: item.quantity for item in items}),
        {product.pk: product for product in products.values()},
        event_id=event.event_id,
        order_id=order.pk,
    )
    publish(event)
    method.open(order)
    return order


def _lock_cart(items: Sequence[Item]) -> Mapping[str, Product]:
    """Return the locked products by sku. Raises `UnknownSku` and `NotEnoughStock`."""
    # PostgreSQL takes no NUL, so what cannot be a sku is not asked for.
    skus = [item.sku for item in items if re.match(SKU_PATTERN, item.sku)]
    for_sale = Product.objects.filter(is_active=True, sku__in=skus)
    locked = lock_products(for_sale.values_list("pk", flat=True))
    products = {product.sku: product for product in locked.values()}
    for index, item in enumerate(items):
        if item.sku not in products:
            raise UnknownSku(
                Sentence("is not a product that we sell", "bukan produk yang kami jual"),
                field=f"items[{index}].sku",
            )
    wanted = {products[item.sku].pk: item.quantity for item in items}
    short = {s.product_id: s for s in stock.shortages(wanted, stock.levels_of(locked))}
    for index, item in enumerate(items):
        if shortage := short.get(products[item.sku].pk):
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
    return products


def _insert_order(order: Order) -> Order:
    """Insert the order under a number that is free."""
    for draw in range(1, _NUMBER_DRAWS + 1):
        order.number = new_order_number(order.created_at)
        try:
            with transaction.atomic():
                order.save(force_insert=True)
        except IntegrityError:
            if draw == _NUMBER_DRAWS:
                raise
        else:
            break
    return order


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
