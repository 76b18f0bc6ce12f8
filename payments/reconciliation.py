"""Nothing waits for a webhook: payments that are open longer than they should be are asked for.

Each payment says when to ask for it next (`Payment.next_ask_at`). A sweep of the relay and
`manage.py reconcile` ask for what is due. What they find goes the way of a notification; where it
changes a payment, a webhook was missed, and that is counted.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from orders.locks import lock_order
from orders.models import Order
from payments.asking_times import next_time
from payments.attempts import lock_reported_payment
from payments.confirmation import Asked, apply_answer, ask
from payments.exceptions import GatewayRefused, GatewayUnavailable, NotCancellable
from payments.locks import lock_payment_of
from payments.models import AskingPace, Payment, PaymentNotification
from payments.notifications import record
from payments.providers import gateways, provider
from payments.providers.base import GatewayNotification
from payments.status import OPEN, PAID, PaymentStatus
from skincare.telemetry import metrics

log = structlog.get_logger(__name__)

_LEASE: Final = timedelta(seconds=60)  # longer than all calls for one payment take
_RETRY: Final = timedelta(minutes=2)  # while the gateway is away
#: How often each relay reports the open attempts; CloudWatch's shortest period without extra cost.
GAUGE_SECONDS: Final = 60.0
_AGES: Final = {
    "OpenAttemptsOver10Minutes": timedelta(minutes=10),
    "OpenAttemptsOver2Hours": timedelta(hours=2),
    "OpenAttemptsOver26Hours": timedelta(hours=26),  # no page lives so long
}


@dataclass(frozen=True)
class Found:
    """The result of asking for one payment. `is_missed`: a webhook should have reported it."""

    payment: Payment
    before: str
    after: str
    is_missed: bool = False
    error: str = ""


def schedule(payment: Payment, *, opened_at: datetime) -> None:
    """Say when a payment whose page was opened is asked for next; not saved yet.

    Also where its money is in, unless all of it went back: it may be reversed.
    """
    payment.next_ask_at = next_time(
        opened_at=opened_at,
        expires_at=payment.expires_at,
        asked_at=payment.asked_at,
        paid_at=payment.paid_at if payment.is_paid else None,
    )
    if payment.status == PaymentStatus.REFUNDED:
        payment.next_ask_at = None


def due(now: datetime) -> QuerySet[Payment]:
    """Return the payments that have to be asked for, the longest overdue first."""
    names = [one.name for one in gateways()]
    return Payment.objects.filter(next_ask_at__lte=now, provider__in=names).order_by("next_ask_at")


def since(moment: datetime) -> QuerySet[Payment]:
    """Return all payments since then whose money may still come, or that ended without any."""
    names = [one.name for one in gateways()]
    payments = Payment.objects.filter(created_at__gte=moment, provider__in=names)
    asked = Q(session_id__gt="") | Q(transaction_id__gt="")
    return payments.filter(asked).exclude(status=PaymentStatus.REFUNDED).order_by("created_at")


def reconcile(
    payments: Iterable[Payment],
    *,
    per_minute: int,
    report: Callable[[Found], None] = lambda _: None,
    dry_run: bool = False,
) -> int:
    """Ask for each of these payments, at a limited rate a minute; return how many changed.

    All processes that do so share the rate, and each payment is taken when its turn has come. A
    gateway that is away ends nothing: its payments are asked for again later. Nor does a payment
    whose answer breaks something here: the others are asked for.
    """
    changed = 0
    for payment in _in_turn(payments, seconds=60.0 / per_minute):
        try:
            found = ask_now(payment, dry_run=dry_run)
        except Exception as error:
            log.exception("reconciliation_failed", payment_id=str(payment.pk))
            found = Found(payment, payment.status, payment.status, error=type(error).__name__)
        report(found)
        changed += found.before != found.after
    return changed


def _in_turn(payments: Iterable[Payment], *, seconds: float) -> Iterator[Payment]:
    """Yield each payment at a turn of its own, `seconds` after the turn before."""
    following = iter(payments)
    while True:
        while wait := _take_turn(seconds):
            time.sleep(wait)
        payment = next(following, None)
        if payment is None:
            return
        yield payment


_TAKE_TURN: Final = """
WITH taken AS (
    INSERT INTO payments_askingpace AS pace (id, next_at)
    VALUES (%(id)s, clock_timestamp() + make_interval(secs => %(seconds)s))
    ON CONFLICT (id) DO UPDATE SET next_at = excluded.next_at
    WHERE pace.next_at <= clock_timestamp()
    RETURNING id
)
SELECT CASE WHEN EXISTS (SELECT FROM taken) THEN 0 ELSE COALESCE(
    EXTRACT(EPOCH FROM (SELECT next_at FROM payments_askingpace) - clock_timestamp())::float8,
    %(seconds)s) END
"""
_SHORTEST_WAIT: Final = 0.01  # seconds


def _take_turn(seconds: float) -> float:
    """Take the turn to ask, if it is free; the next one is in `seconds`.

    Returns 0 where it is taken, else how many seconds to wait before trying again.
    """
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_TURN, {"id": AskingPace.ONLY, "seconds": seconds})
        [wait] = cursor.fetchone()
    # Another process may have taken it since the statement began: what it read is in the past, or
    # nothing, if that was the first turn of all.
    return 0.0 if wait == 0 else min(max(wait, _SHORTEST_WAIT), seconds)


def ask_soon(order: Order) -> None:
    """Have the next sweep ask for the attempts of a locked order that can still be paid."""
    _payable().filter(order=order).update(next_ask_at=timezone.now())


def close_page(payment: Payment) -> bool:
    """Ask the gateway that nobody can pay this attempt any more; return whether it agrees.

    Raises `GatewayUnavailable` and `GatewayRefused`.
    """
    try:
        provider(payment.provider).cancel(payment)
    except NotCancellable as refusal:
        log.info("attempt_not_cancellable", payment_id=str(payment.pk), reason=refusal.reason)
        return False
    return True


def _payable() -> QuerySet[Payment]:
    """Return the attempts that somebody may pay; the page of a declined card takes another one."""
    return Payment.objects.filter(
        Q(status=PaymentStatus.PENDING, transaction_id__gt="")
        | Q(status__in=[PaymentStatus.PENDING, PaymentStatus.DENIED], session_id__gt="")
    )


def _is_given_up(payment: Payment) -> bool:
    return _payable().filter(pk=payment.pk, order__cancelled_at__isnull=False).exists()


def ask_now(payment: Payment, *, dry_run: bool = False, is_closed: bool = False) -> Found:
    """Ask for one payment and apply what the gateway says. No transaction is open meanwhile.

    `is_closed` says that its gateway has agreed to close it (`close_page`); that of an order which
    was given up is closed first.
    """
    before = payment.status
    try:
        if not dry_run and not is_closed and _is_given_up(payment):
            is_closed = close_page(payment)
        newest = provider(payment.provider).newest(payment)
        asked = ask(payment)
    except (GatewayUnavailable, GatewayRefused) as error:
        wait = timedelta(seconds=getattr(error, "retry_after", None) or 0)
        if not dry_run:
            again = timezone.now() + max(_RETRY, wait)
            Payment.objects.filter(pk=payment.pk).update(next_ask_at=again)
        return Found(payment, before, before, error=str(error))
    if dry_run:
        answers = [one.status for one in (newest, asked.answer) if one and one.status]
        after = next((one for one in answers if one in PAID), answers[-1] if answers else before)
        return Found(payment, before, str(after))
    with transaction.atomic():
        found = _apply(payment.order_id, payment.pk, asked, newest, is_closed=is_closed)
    if found.is_missed:
        metrics.count("WebhooksMissed", provider=payment.provider)
        log.warning(
            "webhook_missed",
            provider=payment.provider,
            payment_id=str(found.payment.pk),
            order_id=str(payment.order_id),
            before=found.before,
            after=found.after,
        )
    return found


def _apply(
    order_id: UUID,
    payment_id: UUID,
    asked: Asked,
    newest: GatewayNotification | None,
    *,
    is_closed: bool,
) -> Found:
    order = lock_order(order_id)
    payment = lock_payment_of(order, payment_id)
    before = payment.status
    changed = apply_answer(order, payment, asked)
    other = _apply_newest(order, payment, newest)
    now = timezone.now()
    if asked.answer is None and other is None and _is_unused(payment):
        # Nobody picked a way to pay: such a page ends without a word.
        if is_closed:
            payment.status = PaymentStatus.CANCELLED
        elif payment.expires_at is not None and payment.expires_at <= now:
            payment.status = PaymentStatus.EXPIRED
    payment.asked_at = now
    schedule(payment, opened_at=payment.created_at)
    # Not the whole row: the other transaction may have held it as the one that is too much.
    payment.save(update_fields=["status", "asked_at", "next_ask_at", "updated_at"])
    if other is not None and other.status in PAID:
        return Found(other, PaymentStatus.PENDING, other.status, is_missed=True)
    is_missed = changed and payment.status not in OPEN
    return Found(payment, before, payment.status, is_missed=is_missed)


def _apply_newest(
    order: Order, payment: Payment, newest: GatewayNotification | None
) -> Payment | None:
    """Apply the newest transaction of the reference where it is another one than the payment's."""
    if newest is None or newest.transaction_id == payment.transaction_id:
        return None
    about = lock_reported_payment(newest)
    if about is None or about.pk == payment.pk or about.order_id != order.pk:
        return None
    before = about.status
    received = record(newest)
    about.refresh_from_db()
    is_new = received.outcome == PaymentNotification.Outcome.APPLIED and about.status != before
    return about if is_new else None


def _is_unused(payment: Payment) -> bool:
    return payment.status == PaymentStatus.PENDING and not payment.transaction_id


def sweep() -> int:
    """Ask for what is due, up to what one minute may ask for; return how many changed.

    Several sweeps may run at once: each leases a payment before it asks. One that finds nothing to
    ask for takes no turn from the others.
    """
    if not due(timezone.now()).exists():
        return 0
    return reconcile(_leased(), per_minute=settings.GATEWAY_ASKS_PER_MINUTE)


def _leased() -> Iterator[Payment]:
    for _ in range(settings.GATEWAY_ASKS_PER_MINUTE):
        payment = _lease_next()
        if payment is None:
            return
        yield payment


def _lease_next() -> Payment | None:
    """Return the payment that is longest overdue and that nobody else leases at this moment."""
    now = timezone.now()
    with transaction.atomic():
        payment = due(now).select_for_update(no_key=True, skip_locked=True).first()
        if payment is not None:
            payment.next_ask_at = now + _LEASE
            Payment.objects.filter(pk=payment.pk).update(next_ask_at=payment.next_ask_at)
    return payment


def gauge_open_attempts() -> None:
    """Record how many attempts have been open for so long: each is a part of the one before."""
    open_ = Payment.objects.filter(status__in=OPEN, session_id__gt="")
    now = timezone.now()
    older = {name: Count("pk", filter=Q(created_at__lt=now - age)) for name, age in _AGES.items()}
    metrics.record(open_.aggregate(**older))


def is_due() -> bool:
    """Whether a payment has to be asked for now."""
    return due(timezone.now()).exists()


class Sweeper:
    """Runs a sweep in a thread of its own: a slow gateway must not keep the relay waiting."""

    def __init__(self, sweep: Callable[[], object], is_due: Callable[[], bool]) -> None:
        self._sweep = sweep
        self._is_due = is_due
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start a sweep if none runs in this process."""
        if self._thread is not None and self._thread.is_alive():
            return
        if not self._is_due():
            return
        self._thread = threading.Thread(target=self._run, name="reconciliation", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with structlog.contextvars.bound_contextvars(service="relay"):
                self._sweep()
        except Exception:
            log.exception("reconciliation_failed")
        finally:
            connection.close()
