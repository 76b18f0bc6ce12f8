"""Pay: open the payment page of an order at its gateway, and keep to one page that can be paid.

The attempt is written before the gateway is called and completed after it; no transaction is open
meanwhile. Whoever asks again gets the same page as long as it lives. Another page is opened only
when the gateway has confirmed that nobody can pay on the one before: two pages are two payments.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from orders.idempotency import body_hash, check_key
from orders.locks import lock_order
from orders.models import Order
from orders.order_numbers import JAKARTA
from orders.sentences import Sentence
from orders.status import OrderStatus
from payments import windows
from payments.attempts import open_attempt
from payments.exceptions import (
    AttemptStillOpen,
    GatewayUnavailable,
    OrderNotPayable,
    PageBeingOpened,
    PageKeyReused,
    ReferenceInUse,
    UnknownWay,
)
from payments.locks import lock_payment_of
from payments.models import PageRequest, Payment
from payments.providers import Gateway, provider
from payments.providers.base import Line, Page, Purchase
from payments.reconciliation import ask_now, close_page, schedule
from payments.status import PAID, PaymentStatus

log = structlog.get_logger(__name__)

#: Attempts at one order's page in one request: the one that was there, and the one after it.
_MAX_ATTEMPTS: Final = 2
#: Nobody can pay on the page any more. A declined card is no such end: its page takes another one.
_ENDED: Final = (PaymentStatus.EXPIRED, PaymentStatus.CANCELLED, PaymentStatus.FAILED)


@dataclass(frozen=True)
class Opened:
    """A payment page that can be paid on. `is_new`: it was opened for this request."""

    payment: Payment
    is_new: bool


def open_page(*, order_id: UUID | str, wanted: str, idempotency_key: str | None) -> Opened:
    """Return the payment page of an order, opened now or before.

    `wanted` is a provider that checkout offers, one of `windows.WAYS`, or "" for what the order was
    made with. Raises `OrderNotFound`, `OrderNotPayable`, `UnknownWay`, `PageBeingOpened`,
    `AttemptStillOpen`, `PageKeyReused`, the refusals of an Idempotency-Key, `GatewayUnavailable`
    and `GatewayRefused`.
    """
    key, hashed = check_key(idempotency_key), body_hash({"payment_method": wanted})
    provider_name, way = _choice(wanted)
    for _ in range(_MAX_ATTEMPTS):
        claimed = _claim(order_id, provider_name, way, key=key, hashed=hashed)
        if isinstance(claimed, Opened):
            return claimed
        if claimed.session_id:
            end_attempt(claimed)
            continue
        try:
            return _open(claimed, key=key, hashed=hashed)
        except ReferenceInUse:
            # An earlier call was done, and its page was used: what is paid is taken.
            end_attempt(claimed)
    raise AttemptStillOpen(str(order_id))


def with_pages() -> list[str]:
    """Return the providers that checkout offers and that have payment pages."""
    return [one for one in settings.PAYMENT_PROVIDERS if isinstance(provider(one), Gateway)]


def _choice(wanted: str) -> tuple[str, str]:
    """Return the provider and the way; "" for what the order says, and for all ways."""
    if wanted in windows.WAYS:
        return "", wanted
    if wanted and wanted not in with_pages():
        raise UnknownWay(", ".join([*with_pages(), *windows.WAYS]))
    return wanted, ""


def _claim(
    order_id: UUID | str, provider_name: str, way: str, *, key: str, hashed: str
) -> Opened | Payment:
    """Decide under the order's lock: the page that lives, one to be ended, or one to be opened.

    An attempt to be opened is leased, so that two requests do not open it twice.
    """
    with transaction.atomic():
        order = lock_order(order_id)
        known = PageRequest.objects.select_related("payment").filter(order=order, key=key).first()
        if known is not None:
            if known.body_hash != hashed:
                raise PageKeyReused(
                    Sentence(
                        "was used before with another body: use a new one",
                        "sudah dipakai dengan isi lain: pakai yang baru",
                    )
                )
            return Opened(known.payment, is_new=False)
        _check_payable(order)
        wanted = provider_name or order.payment_method
        if not isinstance(provider(wanted), Gateway):
            raise OrderNotPayable(f"{wanted} has no payment page")
        attempt = _newest_attempt(order)
        now = timezone.now()
        if attempt is not None and _lives(attempt):
            if attempt.page_leased_until is not None and attempt.page_leased_until > now:
                raise PageBeingOpened(str(order.pk))
            fits = attempt.provider == wanted and way in ("", attempt.way)
            if attempt.session_id:
                return _remember(order, attempt, key, hashed) if fits else attempt
            if attempt.provider != wanted:
                # No page of it was ever asked for, or an earlier answer was lost.
                if attempt.page_tries:
                    return _lease(order, attempt, attempt.way)
                attempt.status = PaymentStatus.CANCELLED
                attempt.save()
                attempt = None
        else:
            attempt = None
        return _lease(order, attempt or open_attempt(order, provider=wanted), way)


def _check_payable(order: Order) -> None:
    if order.status != OrderStatus.PENDING or order.cancelled_at is not None:
        raise OrderNotPayable(f"it is {order.status}")
    if order.total_rupiah == 0:
        raise OrderNotPayable("it costs nothing")
    if Payment.objects.filter(order=order, status__in=PAID).exists():
        raise OrderNotPayable("its money is in")


def _newest_attempt(order: Order) -> Payment | None:
    """Return the payment that carries the page of the order's last attempt."""
    attempts = Payment.objects.filter(order=order).exclude(reference="")
    pages = attempts.exclude(session_id="").order_by("-number", "created_at").first()
    opened = attempts.filter(session_id="", transaction_id="").order_by("-number").first()
    found = [one for one in (pages, opened) if one is not None]
    return max(found, key=lambda one: one.number, default=None)


def _lives(attempt: Payment) -> bool:
    """Whether somebody may pay it: a declined card leaves its page open for another one."""
    if attempt.status in PAID or attempt.status in _ENDED:
        return False
    return attempt.expires_at is None or attempt.expires_at > timezone.now()


def _lease(order: Order, attempt: Payment, way: str) -> Payment:
    now = timezone.now()
    calls = settings.GATEWAY_CONNECT_SECONDS + settings.GATEWAY_READ_SECONDS
    attempt.way = way
    attempt.page_tries += 1
    attempt.page_leased_until = now + timedelta(seconds=2 * calls)
    attempt.expires_at = now + timedelta(minutes=windows.minutes(way))
    attempt.save()
    attempt.order = order
    return attempt


def _remember(order: Order, attempt: Payment, key: str, hashed: str) -> Opened:
    PageRequest.objects.create(order=order, key=key, body_hash=hashed, payment=attempt)
    return Opened(attempt, is_new=False)


def _open(attempt: Payment, *, key: str, hashed: str) -> Opened:
    """Ask the gateway for the page of a leased attempt, and write it down."""
    again = attempt.page_tries > 1
    try:
        page = provider(attempt.provider).create(attempt, _purchase(attempt), again=again)
    except Exception:
        # Whether it was done is not known: the next one asks with the same reference.
        Payment.objects.filter(pk=attempt.pk).update(page_leased_until=None)
        raise
    if page is None:
        raise OrderNotPayable(f"{attempt.provider} has no payment page")
    with transaction.atomic():
        order = lock_order(attempt.order_id)
        payment = lock_payment_of(order, attempt.pk)
        _complete(order, payment, page)
        PageRequest.objects.get_or_create(
            order=order, key=key, defaults={"body_hash": hashed, "payment": payment}
        )
    log.info(
        "payment_page_opened",
        order_id=str(order.pk),
        payment_id=str(payment.pk),
        provider=payment.provider,
        tries=payment.page_tries,
    )
    return Opened(payment, is_new=True)


def _complete(order: Order, payment: Payment, page: Page) -> None:
    payment.session_id, payment.page_url = page.session_id, page.url
    payment.expires_at = page.expires_at or payment.expires_at
    payment.page_leased_until = None
    schedule(payment, opened_at=timezone.now())
    payment.save()
    if payment.expires_at is not None:
        # The order waits as long as its page, and a little: the gateway is asked after its end.
        order.expires_at = max(payment.expires_at, timezone.now())
        order.save(update_fields=["expires_at", "updated_at"])


def _purchase(attempt: Payment) -> Purchase:
    order = attempt.order
    return Purchase(
        order_number=order.number,
        lines=tuple(
            Line(line.sku, line.name, line.quantity, line.unit_price_rupiah)
            for line in order.lines.all()
        ),
        email=order.email,
        return_url=f"{settings.SHOP_URL}/orders/{order.pk}",
        starts_at=timezone.localtime(timezone=JAKARTA),
        minutes=windows.minutes(attempt.way),
        way=attempt.way,
    )


def end_attempt(payment: Payment) -> None:
    """Let nobody pay on this page any more, and have the gateway confirm it.

    What turns out to be paid is taken. Raises `OrderNotPayable` then, `AttemptStillOpen` where the
    buyer can still pay, `GatewayUnavailable` and `GatewayRefused`.
    """
    found = ask_now(payment, is_closed=close_page(payment))
    if found.error:
        raise GatewayUnavailable(payment.provider, found.error)
    payment.refresh_from_db()
    if found.payment.status in PAID or payment.status in PAID:
        raise OrderNotPayable("its money is in")
    if payment.status not in _ENDED:
        # Also a declined card, whose page takes another one.
        raise AttemptStillOpen(str(payment.order_id))
