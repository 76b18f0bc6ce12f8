"""Do orders, payments, holds and stock agree? Everything is recomputed, and nothing is changed.

What is still on its way is not a fault: an order whose event a worker has still to process is
left out for an hour.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from orders.models import Order, OrderLine, Product, StockMovement
from orders.status import OrderStatus
from orders.stock import Holding, stock_of_state
from payments.hold_codes import HoldCode
from payments.models import Hold, Payment
from payments.standing import Standing, standing, status_of_order
from payments.status import PaymentStatus
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.telemetry import metrics

_CHUNK: Final = 500  # orders that are read at a time
#: An event that is older and not processed is a fault, not on its way.
ON_ITS_WAY: Final = timedelta(hours=1)
#: The daily check looks back so far; the command, without a limit.
DAILY: Final = timedelta(days=60)
_LOCK: Final = 0x6D6F6E6579  # "money": one relay checks at a time


@dataclass(frozen=True)
class Disagreement:
    """Something that does not agree: `subject` is an order's number or a product's SKU."""

    subject: str
    what: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.what}"


def check_money(*, since: timedelta | None = None) -> Iterator[Disagreement]:
    """Yield what does not agree, of orders made within `since` (None: of all), and of all stock."""
    orders = Order.objects.order_by("created_at", "pk")
    if since is not None:
        orders = orders.filter(created_at__gte=timezone.now() - since)
    rows = orders.iterator(chunk_size=_CHUNK)
    while chunk := list(islice(rows, _CHUNK)):
        yield from check_orders(chunk)
    yield from check_products()


def check_daily() -> int:
    """Check what is younger than `DAILY` and report the number as a metric; return it.

    Where another relay is at it, nothing is done.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
        [has_lock] = cursor.fetchone()
        if not has_lock:
            return 0
        found = sum(1 for _ in check_money(since=DAILY))
    metrics.record({"MoneyDisagreements": found})
    return found


def check_orders(orders: Sequence[Order]) -> Iterator[Disagreement]:
    """Yield what does not agree of these orders."""
    ids = [order.pk for order in orders]
    payments = _by_order(Payment.objects.filter(order_id__in=ids))
    refunds = _refunds(ids)
    holds = _by_order(Hold.objects.filter(order_id__in=ids, closed_at=None).order_by("id"))
    wanted = _wanted(ids)
    holdings = _holdings(ids)
    found = {
        order: [
            *_of_payments(payments[order.pk], refunds),
            *_of_state(order, standing(order.total_rupiah, payments[order.pk])),
            *_of_holds(order, holds[order.pk], payments[order.pk]),
            *_of_stock(order, wanted[order.pk], holdings[order.pk], holds[order.pk]),
        ]
        for order in orders
    }
    waiting = _on_their_way(order.pk for order, what in found.items() if what)
    for order, sentences in found.items():
        if order.pk not in waiting:
            yield from (Disagreement(order.number, sentence) for sentence in sentences)


def check_products() -> Iterator[Disagreement]:
    """Yield the products whose numbers are not what their movements add up to."""
    moved = Product.objects.annotate(
        moved_stock=Coalesce(Sum("movements__stock_delta"), 0),
        moved_reserved=Coalesce(Sum("movements__reserved_delta"), 0),
    )
    for product in moved.exclude(stock=F("moved_stock"), reserved=F("moved_reserved")):
        yield Disagreement(
            product.sku,
            f"has {product.stock} pieces, {product.reserved} reserved; its movements add up to "
            f"{product.moved_stock} and {product.moved_reserved}",
        )


def _of_payments(payments: Iterable[Payment], refunds: Mapping[UUID, int]) -> Iterator[str]:
    for payment in payments:
        recorded = refunds.get(payment.pk, 0)
        if recorded != payment.refunded_rupiah:
            yield (
                f"payment {payment.pk} has {payment.refunded_rupiah} rupiah refunded, its refunds "
                f"add up to {recorded}"
            )
        if payment.status == PaymentStatus.REFUNDED and recorded != payment.amount_rupiah:
            yield f"payment {payment.pk} is refunded, and {recorded} rupiah went back"


def _of_state(order: Order, found: Standing) -> Iterator[str]:
    is_out = order.shipped_at is not None and order.returned_at is None
    wanted = status_of_order(
        order.status_now,
        found,
        is_cancelled=order.cancelled_at is not None,
        is_shipped=is_out,
    )
    if order.status != wanted:
        yield (
            f"is {order.status}, and has to be {wanted}: {found.kept_rupiah} of "
            f"{order.total_rupiah} rupiah are kept"
        )
    if order.refunded_rupiah != found.refunded_rupiah:
        yield f"has {order.refunded_rupiah} rupiah refunded, and not {found.refunded_rupiah}"
    if order.can_be_shipped and found.kept_rupiah != order.total_rupiah:
        yield (f"could be shipped, and {found.kept_rupiah} of {order.total_rupiah} rupiah are kept")


def _of_holds(order: Order, holds: list[Hold], payments: list[Payment]) -> Iterator[str]:
    lines = [
        f"payment {hold.payment_id}: {hold.reason}" if hold.payment_id else hold.reason
        for hold in holds
    ]
    if sorted(order.held_reason.splitlines()) != sorted(lines):
        yield f"is held for {order.held_reason!r}, and its open holds say {lines}"
    found = standing(order.total_rupiah, payments)
    for pk in found.surplus:
        if not any(one.code == HoldCode.SURPLUS and one.payment_id == pk for one in holds):
            yield f"was paid more than once, and payment {pk} is not held"
    if order.cancelled_at is not None and found.kept_rupiah and not holds:
        yield f"was cancelled, and keeps {found.kept_rupiah} rupiah without a hold"


def _of_stock(
    order: Order, wanted: Mapping[int, int], holdings: Mapping[int, Holding], holds: list[Hold]
) -> Iterator[str]:
    is_out = order.shipped_at is not None and order.returned_at is None
    target = stock_of_state(wanted, OrderStatus.PAID if is_out else order.status_now)
    may_lack = order.cancelled_at is not None or any(
        hold.code == HoldCode.OUT_OF_STOCK for hold in holds
    )
    for product in sorted({*target, *holdings}):
        has_to, has = target.get(product, Holding()), holdings.get(product, Holding())
        lacks = has.reserved + has.sold < has_to.reserved + has_to.sold
        if has != has_to and not (may_lack and lacks):
            yield (
                f"holds {has.reserved} reserved and {has.sold} sold of product {product}, and not "
                f"{has_to.reserved} and {has_to.sold}"
            )


def _by_order(rows: Iterable[Any]) -> defaultdict[UUID, list[Any]]:
    found: defaultdict[UUID, list[Any]] = defaultdict(list)
    for row in rows:
        found[row.order_id].append(row)
    return found


def _refunds(ids: list[UUID]) -> dict[UUID, int]:
    sums = Payment.objects.filter(order_id__in=ids).annotate(recorded=Sum("refunds__amount_rupiah"))
    return dict(sums.exclude(recorded=None).values_list("pk", "recorded"))


def _wanted(ids: list[UUID]) -> defaultdict[UUID, dict[int, int]]:
    found: defaultdict[UUID, dict[int, int]] = defaultdict(dict)
    lines = OrderLine.objects.filter(order_id__in=ids)
    for order_id, product, pieces in lines.values_list("order_id", "product_id", "quantity"):
        found[order_id][product] = pieces
    return found


def _holdings(ids: list[UUID]) -> defaultdict[UUID, dict[int, Holding]]:
    found: defaultdict[UUID, dict[int, Holding]] = defaultdict(dict)
    sums = (
        StockMovement.objects.filter(order_id__in=ids)
        .order_by("order_id", "product_id")
        .values_list("order_id", "product_id")
        .annotate(reserved=Sum("reserved_delta"), moved=Sum("stock_delta"))
    )
    for order_id, product, reserved, moved in sums:
        if order_id is not None:
            found[order_id][product] = Holding(reserved=reserved, sold=-moved)
    return found


def _on_their_way(ids: Iterable[UUID]) -> set[UUID]:
    """Return the orders that wait for a worker, and not for long."""
    texts = {str(pk): pk for pk in ids}
    young = Q(created_at__gte=timezone.now() - ON_ITS_WAY)
    published = OutboxEvent.objects.filter(young, order_id__in=texts)
    finished = ProcessedEvent.objects.filter(
        order_id__in=texts, status__in=ProcessedEvent.FINISHED
    ).values("event_id")
    waiting = published.exclude(event_id__in=finished).values_list("order_id", flat=True)
    return {texts[order_id] for order_id in waiting}
