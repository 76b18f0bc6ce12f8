"""Receiving what a gateway reports: stored once its sender is proven, applied once, whoever repeats
it and when.

`record` is the one entry for "the gateway says that this payment is in this state": webhooks use
it, and so does whoever asks the gateway.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from orders.rows import insert_once
from payments.apply import apply_report, brings_back, tie
from payments.asking_times import next_time
from payments.attempts import lock_reported_payment
from payments.events import publish_once, reported_event
from payments.exceptions import Malformed, NotUnreadable
from payments.models import Payment, PaymentNotification
from payments.providers import provider
from payments.providers.base import Gateway, GatewayNotification
from payments.status import REFUND, UNPAID, PaymentStatus
from skincare.events import audit
from skincare.telemetry import metrics

log = structlog.get_logger(__name__)

_Outcome = PaymentNotification.Outcome
_MAX_REASON: Final = 255


@dataclass(frozen=True)
class Received:
    """How a notification ended. `is_repeat`: it had ended before, and nothing was done now."""

    outcome: PaymentNotification.Outcome
    is_repeat: bool


def receive(gateway: Gateway, document: dict[str, Any]) -> Received:
    """Store a proven document, and apply it if it can be read, in one transaction of its own.

    A repeat changes nothing, unless it was unmatched before: then it is applied now if its order is
    there. What cannot be read or applied waits for a person. Raises django.db.Error where the
    database does not answer or the order stays locked; nothing is stored then.
    """
    kept = _dump(without_personal(document, gateway.personal))
    try:
        report = gateway.parse(document)
    except Malformed as error:
        return receive_unreadable(gateway, kept, reason=str(error))
    except Exception as error:  # a fault of ours must not lose what was reported
        log.exception("notification_parse_failed", provider=gateway.name)
        return receive_unreadable(gateway, kept, reason=f"{type(error).__name__}: {error}")
    if report is None:
        return _receive_closed(gateway, kept, _Outcome.IGNORED, reason="another product's event")
    try:
        with _own_transaction():
            return record(report, document=kept)
    except DatabaseError:
        raise
    except Exception as error:
        log.exception("notification_apply_failed", provider=gateway.name)
        return receive_unreadable(gateway, kept, reason=f"{type(error).__name__}: {error}")


def receive_unreadable(gateway: Gateway, document: str, *, reason: str) -> Received:
    """Store what a proven sender sent and nobody can read; a person looks at it."""
    metrics.count("WebhooksUnreadable", provider=gateway.name)
    log.error("notification_unreadable", provider=gateway.name, reason=reason)
    return _receive_closed(gateway, document, _Outcome.UNREADABLE, reason=reason)


def record(report: GatewayNotification, *, document: str = "") -> Received:
    """Store a report and apply it to its payment, inside the caller's transaction.

    `document` is what it was read from; it is kept only as long as the report has no payment.
    """
    # The insert comes first: of two parallel repeats, the second waits here for the first.
    stored, is_new = _get_or_store(report, document)
    if not is_new and stored.outcome != _Outcome.UNMATCHED:
        if stored.payment is not None and _may_be_news(stored.payment, stored):
            Payment.objects.filter(pk=stored.payment.pk).update(next_ask_at=timezone.now())
        return _ended(stored, is_repeat=True)
    if report.is_test:
        stored.decide(payment=None, outcome=_Outcome.TEST, reason="the dashboard's test button")
        return _ended(stored, is_repeat=not is_new)
    payment = lock_reported_payment(report)
    if payment is None:
        return _ended(stored, is_repeat=not is_new)
    if not is_new:
        # Another repeat may have been applied while this one waited for the lock.
        stored.refresh_from_db()
        if stored.outcome != _Outcome.UNMATCHED:
            return _ended(stored, is_repeat=True)
    # What a dispute needs is a person's answer, of which a payment's state says nothing.
    is_warning = report.is_dispute and report.status is None
    if report.provider in settings.PROVIDERS_ASKED and not (report.is_answer or is_warning):
        return _ask_first(payment, report, stored)
    applied = apply_report(payment, report, stored)
    stored.decide(payment=payment, outcome=applied.outcome, reason=applied.reason)
    return _ended(stored, is_repeat=False)


def _may_be_news(payment: Payment, repeated: PaymentNotification) -> bool:
    """Whether the gateway has to be asked about a notification that it has sent before.

    What it did not confirm, or somebody forged before, may be true by now; a settlement after a
    chargeback or a refund says in the same words as the first one that the money came back, and a
    chargeback after that, that it is gone again.
    """
    is_gone_again = repeated.status in REFUND and payment.status == PaymentStatus.SETTLED
    was_in_doubt = repeated.outcome == _Outcome.HELD
    return was_in_doubt or is_gone_again or brings_back(payment, repeated.status)


def _ask_first(
    payment: Payment, report: GatewayNotification, stored: PaymentNotification
) -> Received:
    """Let the worker ask the gateway before anything follows from a notification."""
    tie(payment, report)
    if payment.next_ask_at is None:
        payment.next_ask_at = next_time(
            opened_at=timezone.now(), expires_at=report.expires_at, asked_at=None
        )
    payment.save()
    stored.wait_for_answer(payment=payment)
    publish_once(reported_event(payment, report))
    return _ended(stored, is_repeat=False)


def unasked_money() -> QuerySet[PaymentNotification]:
    """Return the notifications that may be of money and wait for their gateway's word."""
    waiting = PaymentNotification.objects.filter(outcome=_Outcome.WAITING)
    return waiting.exclude(status__in=[PaymentStatus.PENDING, *UNPAID])


def retry_unmatched(*, limit: int = 100) -> int:
    """Apply the notifications whose order has come meanwhile; return how many those were."""
    since = timezone.now() - timedelta(days=settings.UNMATCHED_RETRY_DAYS)
    waiting = PaymentNotification.objects.filter(
        outcome=_Outcome.UNMATCHED, received_at__gte=since
    ).exclude(document="")
    matched = 0
    # In no order: those whose order never comes must not keep the others waiting. One after the
    # other: a document may be long.
    for pk in list(waiting.order_by("?").values_list("pk", flat=True)[:limit]):
        try:
            stored = PaymentNotification.objects.get(pk=pk)
            gateway = provider(stored.provider)
            report = gateway.parse(json.loads(stored.document))  # type: ignore[attr-defined]
            with _own_transaction():
                matched += record(report).outcome is not _Outcome.UNMATCHED
        except Exception:
            log.exception("unmatched_retry_failed", notification=pk)
    return matched


def read_again(*, notification_id: int, actor: str) -> Received:
    """Read an unreadable notification once more, with what this release understands.

    Returns how what it says ended; it is a notification of its own then. Raises `NotUnreadable`,
    and `Malformed` where it still cannot be read.
    """
    with transaction.atomic():
        unreadable = PaymentNotification.objects.filter(outcome=_Outcome.UNREADABLE)
        stored = unreadable.select_for_update().filter(pk=notification_id).first()
        if stored is None:
            raise NotUnreadable(str(notification_id))
        try:
            document = json.loads(stored.document)
        except ValueError:
            raise Malformed("document", "is not a JSON object") from None
        report = provider(stored.provider).parse(document)  # type: ignore[attr-defined]
        if report is None:
            stored.decide(payment=None, outcome=_Outcome.READ, reason="another product's event")
            received = Received(outcome=_Outcome.IGNORED, is_repeat=False)
        else:
            received = record(report, document=stored.document)
            stored.decide(
                payment=None, outcome=_Outcome.READ, reason=f"read again: {received.outcome}"
            )
        audit.record(actor=actor, action="read again", subject=stored)
    return received


def without_personal(value: Any, names: frozenset[str]) -> Any:
    """Return JSON without the keys in `names`, at any depth."""
    if isinstance(value, dict):
        return {k: without_personal(v, names) for k, v in value.items() if k not in names}
    if isinstance(value, list):
        return [without_personal(one, names) for one in value]
    return value


def _dump(document: Any) -> str:
    # ASCII only: what PostgreSQL cannot store as text, such as a NUL, is escaped.
    return json.dumps(document, default=str)[: settings.WEBHOOK_MAX_BYTES]


@contextmanager
def _own_transaction() -> Iterator[None]:
    """A transaction that waits for a lock only as long as a gateway waits for us."""
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            timeout = f"{settings.WEBHOOK_LOCK_TIMEOUT_SECONDS * 1000:.0f}ms"
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [timeout])
        yield


def _receive_closed(
    gateway: Gateway, document: str, outcome: PaymentNotification.Outcome, *, reason: str
) -> Received:
    """Store a document that nothing can be read from."""
    digest = hashlib.sha256(document.encode()).hexdigest()
    with _own_transaction():
        stored, is_new = _insert_or_get(
            PaymentNotification(
                provider=gateway.name,
                identity=f"document:{digest}",
                transaction_id="",
                occurred_at=timezone.now(),
                payload={},
                document=document if outcome == _Outcome.UNREADABLE else "",
                outcome=outcome,
                reason=_storable(reason),
            )
        )
        return _ended(stored, is_repeat=not is_new)


def _storable(reason: str) -> str:
    return reason.encode("ascii", "backslashreplace").decode().replace("\x00", "")[:_MAX_REASON]


def store(answer: GatewayNotification) -> PaymentNotification:
    """Store what a gateway answered when it was asked; the same answer again is the same row."""
    return _get_or_store(answer, "")[0]


def _get_or_store(report: GatewayNotification, document: str) -> tuple[PaymentNotification, bool]:
    """Return the stored notification, and whether it is new. It is unmatched until decided."""
    return _insert_or_get(
        PaymentNotification(
            provider=report.provider,
            identity=report.identity,
            transaction_id=report.transaction_id,
            order_reference=report.order_reference,
            status=report.status or "",
            amount=report.amount,
            currency=report.currency,
            channel=report.channel,
            occurred_at=report.occurred_at,
            payload=dict(report.payload),
            document=document,
            outcome=_Outcome.UNMATCHED,
        )
    )


def _insert_or_get(new: PaymentNotification) -> tuple[PaymentNotification, bool]:
    """Store a notification, unless it is stored already; return the one that is, and whether that
    is the new one.
    """
    if insert_once(new, unique="provider, identity"):
        return new, True
    return PaymentNotification.objects.get(provider=new.provider, identity=new.identity), False


def _ended(stored: PaymentNotification, *, is_repeat: bool) -> Received:
    outcome = _Outcome(stored.outcome)
    known = stored.payment
    needs_person = (_Outcome.HELD, _Outcome.UNMATCHED, _Outcome.UNREADABLE)
    logged = log.warning if outcome in needs_person else log.info
    logged(
        "notification_received",
        provider=stored.provider,
        transaction_id=stored.transaction_id,
        order_reference=stored.order_reference,
        notified_status=stored.status,
        outcome=outcome.value,
        reason=stored.reason,
        repeat=is_repeat,
        payment_id=str(known.pk) if known else "",
        order_id=str(known.order_id) if known else "",
    )
    return Received(outcome=outcome, is_repeat=is_repeat)
