"""Xendit's documents in the normal form: callbacks of all its products, and answers.

https://docs.xendit.co/docs/payments-api-webhooks
https://docs.xendit.co/apidocs/payment-webhook-notification
https://docs.xendit.co/apidocs/refund-webhook-notification
https://docs.xendit.co/apidocs/dispute-webhook-notifications
https://github.com/xendit/xendit-node/blob/master/docs/invoice/InvoiceCallback.md
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal

import structlog
from django.utils.timezone import now

from payments.exceptions import GatewayUnavailable, Malformed
from payments.providers.base import (
    CURRENCY,
    GatewayNotification,
    GatewayRefund,
    RefundState,
)
from payments.providers.document import (
    any_amount,
    any_moment,
    any_text,
    child,
    kept_fields,
    label,
    optional_text,
    text,
)
from payments.providers.xendit_calls import NAME
from payments.status import PaymentStatus

if TYPE_CHECKING:
    from payments.models import Payment

log = structlog.get_logger(__name__)

#: PAID is "the buyer paid", SETTLED "it is on our balance": the money is the shop's in both.
_INVOICE_STATUSES: Final[Mapping[str, PaymentStatus]] = {
    "PENDING": PaymentStatus.PENDING,
    "PAID": PaymentStatus.SETTLED,
    "SETTLED": PaymentStatus.SETTLED,
    "EXPIRED": PaymentStatus.EXPIRED,
}

#: event → (the state that it reports, the data.status values that agree with it).
_PAYMENT_EVENTS: Final[Mapping[str, tuple[PaymentStatus, frozenset[str]]]] = {
    # Payments API v3
    "payment.capture": (PaymentStatus.SETTLED, frozenset({"SUCCEEDED"})),
    "payment.authorization": (PaymentStatus.AUTHORIZED, frozenset({"AUTHORIZED"})),
    "payment.failure": (PaymentStatus.FAILED, frozenset({"FAILED"})),
    "payment.expiry": (PaymentStatus.EXPIRED, frozenset({"EXPIRED"})),
    "payment_request.expiry": (PaymentStatus.EXPIRED, frozenset({"EXPIRED"})),
    # Payments API v2
    "payment.succeeded": (PaymentStatus.SETTLED, frozenset({"SUCCEEDED"})),
    "payment.awaiting_capture": (PaymentStatus.AUTHORIZED, frozenset({"AWAITING_CAPTURE"})),
    "payment.pending": (PaymentStatus.PENDING, frozenset({"PENDING"})),
    "payment.failed": (PaymentStatus.FAILED, frozenset({"FAILED"})),
}
_SESSION_EVENTS: Final[Mapping[str, tuple[PaymentStatus, frozenset[str]]]] = {
    "payment_session.completed": (PaymentStatus.SETTLED, frozenset({"COMPLETED"})),
    "payment_session.expired": (PaymentStatus.EXPIRED, frozenset({"EXPIRED"})),
}
_REFUND_SUCCEEDED: Final = "refund.succeeded"
DISPUTE_ENDINGS: Final[Sequence[str]] = ("dispute.lost", "dispute.won")
_DISPUTE_EVENTS: Final = frozenset(
    {
        "dispute.action_required",
        "dispute.due_date_approaching",
        "dispute.under_review",
        *DISPUTE_ENDINGS,
    }
)
_LOST: Final = "LOST"
#: A dispute's state → what the payment is then. Before its end the money stays where it is.
_DISPUTE_STATUSES: Final[Mapping[str, PaymentStatus]] = {
    _LOST: PaymentStatus.PARTLY_REFUNDED,
    "WON": PaymentStatus.SETTLED,
}
# Shapes of older products, which accounts still get.
_EWALLET_CAPTURE: Final = "ewallet.capture"
_QR_PAYMENT: Final = "qr.payment"
_CAPTURED: Final = frozenset({"SUCCEEDED", "COMPLETED"})
#: Events of what this shop does not use. They say nothing of a payment of an order.
_OTHER_PRODUCTS: Final = (
    "account.",
    "account_holder.",
    "batch_disbursement",
    "customer.",
    "direct_debit.",
    "disbursement",
    "linked_account_token.",
    "payment_method.",
    "payment_token.",
    "payout",
    "recurring.",
    "refund.failed",  # the money stays where it is
    "report.",
    "transaction_report",
)
#: The fields that say when something happened.
_TIMES: Final = (
    *("paid_at", "updated", "created", "transaction_timestamp"),
    *("updated_at", "created_at"),
)
#: The order that the dashboard's test button names, for each kind of webhook.
_TEST_ORDERS: Final = frozenset(
    {"invoice_123124123", "fixed-va-1487156410", "test-payload", "testing_id_123"}
)

_REQUEST_STATUSES: Final[Mapping[str, PaymentStatus]] = {
    "ACCEPTING_PAYMENTS": PaymentStatus.PENDING,
    "REQUIRES_ACTION": PaymentStatus.PENDING,
    "AUTHORIZED": PaymentStatus.AUTHORIZED,
    "SUCCEEDED": PaymentStatus.SETTLED,
    "FAILED": PaymentStatus.FAILED,
    "CANCELED": PaymentStatus.CANCELLED,
    "EXPIRED": PaymentStatus.EXPIRED,
}
_REFUND_STATES: Final[Mapping[str, Literal["succeeded", "failed"]]] = {
    "SUCCEEDED": "succeeded",
    "FAILED": "failed",
    "CANCELLED": "failed",
}

#: What is kept. Not kept, though sent: payer and customer data, payment_destination (a virtual
#: account number), payment_details, card data, channel_properties, metadata, return URLs.
_KEPT: Final = frozenset(
    {
        "id",
        "external_id",
        "reference_id",
        "payment_id",
        "payment_request_id",
        "invoice_id",
        "status",
        "amount",
        "paid_amount",
        "request_amount",
        "currency",
        "country",
        "channel_code",
        "payment_method",
        "payment_channel",
        "bank_code",
        "failure_code",
        "reason",
        "type",
        "capture_method",
        "created",
        "updated",
        "paid_at",
    }
)
_KEPT_OF_CAPTURE: Final = frozenset({"capture_id", "capture_amount", "capture_timestamp"})


def notification(document: Mapping[str, Any]) -> GatewayNotification | None:
    """Return what a callback says, or None for another product's event. Raises `Malformed`."""
    report = _read(document)
    return report and replace(report, is_timed=_says(document, report.occurred_at))


def _read(document: Mapping[str, Any]) -> GatewayNotification | None:
    if "event" not in document:
        is_virtual_account = "callback_virtual_account_id" in document
        return _virtual_account(document) if is_virtual_account else invoice(document)
    event = text(document, "event", max_length=64)
    if event in _PAYMENT_EVENTS:
        return _payment(document, event)
    if event in _SESSION_EVENTS:
        return _session(document, event)
    if event == _REFUND_SUCCEEDED:
        return _refund(document)
    if event in _DISPUTE_EVENTS:
        return _dispute(document, event)
    if event == _EWALLET_CAPTURE:
        return _ewallet(document)
    if event == _QR_PAYMENT:
        return _qr(document)
    if event.startswith(_OTHER_PRODUCTS):
        log.info("notification_of_other_product", provider=NAME, xendit_event=event)
        return None
    # It may be about money of ours: a person looks.
    raise Malformed("event", f"is not one that we know: {event}")


def payment_request(document: Mapping[str, Any], payment: "Payment") -> GatewayNotification:
    """Read a payment request of the Payments API as the state of the payment that it led to."""
    word = text(document, "status", max_length=32)
    payment_id = optional_text(document, "latest_payment_id", max_length=128)
    status = _REQUEST_STATUSES.get(word)
    return GatewayNotification(
        provider=NAME,
        identity=f"request:{payment_id or payment.transaction_id}:{word}",
        transaction_id=payment_id or payment.transaction_id,
        order_reference=text(document, "reference_id"),
        status=status,
        amount=_payment_amount(document),
        currency=text(document, "currency", max_length=8),
        occurred_at=_first_moment(document, "updated", "created"),
        channel=label(document, "channel_code"),
        review_reason="" if status else f"unknown payment request status {word}",
        payload=_kept_payment(document),
    )


def with_refunds(
    answer: GatewayNotification,
    documents: Iterable[Mapping[str, Any]],
    disputes: Iterable[Mapping[str, Any]] = (),
) -> GatewayNotification:
    """Return the state of a paid payment with the refunds that have succeeded, and what lost
    disputes took.
    """
    refunds = tuple(
        GatewayRefund(
            text(document, "id", max_length=128),
            any_amount(document, "amount"),
            "refund",
            _first_moment(document, "updated", "created"),
        )
        for document in documents
        if document.get("status") == "SUCCEEDED"
    )
    refunds += tuple(_taken(one) for one in disputes if one.get("status") == _LOST)
    if not refunds or answer.status is not PaymentStatus.SETTLED:
        return answer
    identity = ":".join([answer.identity, *sorted(refund.key for refund in refunds)])
    return replace(
        answer, status=PaymentStatus.PARTLY_REFUNDED, refunds=refunds, identity=identity[:240]
    )


def refund_state(document: Mapping[str, Any]) -> RefundState:
    """Read a refund. Raises `GatewayUnavailable` where it is not as documented."""
    try:
        return RefundState(
            key=text(document, "id", max_length=128),
            status=_REFUND_STATES.get(text(document, "status", max_length=32), "pending"),
            amount=any_amount(document, "amount"),
            reason=optional_text(document, "failure_code", max_length=64),
        )
    except Malformed as error:
        raise GatewayUnavailable(NAME, f"the refund is not as documented: {error}") from None


def invoice(document: Mapping[str, Any]) -> GatewayNotification:
    """Read an invoice, as its callback and its API show it. Raises `Malformed`."""
    word = text(document, "status", max_length=32)
    invoice_id = text(document, "id", max_length=128)
    status = _INVOICE_STATUSES.get(word)
    amount = any_amount(document, "amount")
    review_reason = "" if status else f"unknown invoice status {word}"
    if status is PaymentStatus.SETTLED and document.get("paid_amount") is not None:
        paid = any_amount(document, "paid_amount")
        if paid != amount:
            review_reason = f"invoice of {amount} was paid with {paid}"
    payment_id = any_text(document, "payment_id", max_length=128)
    return GatewayNotification(
        provider=NAME,
        identity=f"invoice:{invoice_id}:{word}",
        transaction_id=invoice_id,
        other_ids=(payment_id,) if payment_id else (),
        order_reference=text(document, "external_id"),
        is_test=document["external_id"] in _TEST_ORDERS,
        status=status,
        amount=amount,
        currency=_currency(document),
        occurred_at=_first_moment(document, "paid_at", "updated", "created"),
        channel=label(document, "payment_channel") or label(document, "payment_method"),
        review_reason=review_reason,
        payload=kept_fields(document, _KEPT),
    )


def _payment(document: Mapping[str, Any], event: str) -> GatewayNotification:
    data = child(document, "data")
    status, agreeing = _PAYMENT_EVENTS[event]
    word = text(data, "status", max_length=32)
    # v3, v2, and a payment request that ended without a payment. The request's id is no other id of
    # a payment: a request can be paid twice.
    payment_id = (
        optional_text(data, "payment_id", max_length=128)
        or optional_text(data, "id", max_length=128)
        or text(data, "payment_request_id", max_length=128)
    )
    review_reason = "" if word in agreeing else f"{event} with status {word}"
    return GatewayNotification(
        provider=NAME,
        identity=f"payment:{payment_id}:{event}:{word}",
        transaction_id=payment_id,
        order_reference=text(data, "reference_id"),
        is_test=data["reference_id"] in _TEST_ORDERS,
        status=status,
        amount=_payment_amount(data),
        currency=_currency(data),
        occurred_at=_first_moment(data, "updated", "created", fallback=document),
        channel=label(data, "channel_code"),
        review_reason=review_reason,
        payload={"event": event, **_kept_payment(data)},
    )


def _session(document: Mapping[str, Any], event: str) -> GatewayNotification:
    """Read the end of a payment session. Its payment is reported too: both are one payment."""
    data = child(document, "data")
    status, agreeing = _SESSION_EVENTS[event]
    session_id = text(data, "payment_session_id", max_length=128)
    word = text(data, "status", max_length=32)
    payment_id = optional_text(data, "payment_id", max_length=128)
    review_reason = "" if word in agreeing else f"{event} with status {word}"
    amount = any_amount(data, "amount") if data.get("amount") is not None else None
    if status is PaymentStatus.SETTLED and amount is None:
        review_reason = review_reason or f"{event} without an amount"
    return GatewayNotification(
        provider=NAME,
        identity=f"session:{session_id}:{event}:{word}",
        transaction_id=payment_id or session_id,
        other_ids=(session_id,) if payment_id else (),
        order_reference=text(data, "reference_id"),
        is_test=data["reference_id"] in _TEST_ORDERS,
        status=status,
        amount=amount,
        currency=_currency(data),
        occurred_at=_first_moment(data, "updated", "created", fallback=document),
        review_reason=review_reason,
        payload={"event": event, **kept_fields(data, _KEPT)},
    )


def _ewallet(document: Mapping[str, Any]) -> GatewayNotification:
    """Read the charge of an e-wallet, in its own older shape."""
    data = child(document, "data")
    return _older(
        data,
        kind="ewallet",
        transaction_id=text(data, "id", max_length=128),
        order_reference=text(data, "reference_id"),
        amount=any_amount(
            data, "capture_amount" if data.get("capture_amount") else "charge_amount"
        ),
        occurred_at=_first_moment(data, "updated", "created", fallback=document),
    )


def _qr(document: Mapping[str, Any]) -> GatewayNotification:
    """Read the payment of a QR code, in its two older shapes."""
    data = document["data"] if isinstance(document.get("data"), dict) else document
    code = data.get("qr_code")
    named = text(code, "external_id") if isinstance(code, dict) else text(data, "reference_id")
    return _older(
        data,
        kind="qr",
        transaction_id=text(data, "id", max_length=128),
        order_reference=named,
        amount=any_amount(data, "amount"),
        occurred_at=_first_moment(data, "created", fallback=document),
    )


def _virtual_account(document: Mapping[str, Any]) -> GatewayNotification:
    """Read the payment of a fixed virtual account. It has no status: it comes when money came."""
    return _older(
        {**document, "status": "COMPLETED"},
        kind="virtual_account",
        transaction_id=text(document, "payment_id", max_length=128),
        order_reference=text(document, "external_id"),
        amount=any_amount(document, "amount"),
        occurred_at=_first_moment(document, "transaction_timestamp", "updated", "created"),
    )


def _older(
    data: Mapping[str, Any],
    *,
    kind: str,
    transaction_id: str,
    order_reference: str,
    amount: Decimal,
    occurred_at: datetime,
) -> GatewayNotification:
    word = text(data, "status", max_length=32)
    failed = PaymentStatus.FAILED if word == "FAILED" else None
    status = PaymentStatus.SETTLED if word in _CAPTURED else failed
    channel = label(data, "channel_code")
    return GatewayNotification(
        provider=NAME,
        identity=f"{kind}:{transaction_id}:{word}",
        transaction_id=transaction_id,
        order_reference=order_reference,
        is_test=order_reference in _TEST_ORDERS,
        status=status,
        amount=amount,
        currency=_currency(data),
        occurred_at=occurred_at,
        channel=channel or label(data, "bank_code") or kind,
        review_reason="" if status else f"unknown {kind} status {word}",
        payload=kept_fields(data, _KEPT),
    )


def _currency(data: Mapping[str, Any]) -> str:
    """Return the currency. Older shapes leave it out; the account's is rupiah then."""
    return optional_text(data, "currency", max_length=8).upper()[:8] or CURRENCY


def _payment_amount(data: Mapping[str, Any]) -> Decimal:
    """Return what was captured; where nothing is captured yet, what was asked for."""
    captures = data.get("captures")
    if isinstance(captures, list) and captures:
        if not all(isinstance(capture, dict) for capture in captures):
            raise Malformed("captures", "must be a list of JSON objects")
        return sum((any_amount(capture, "capture_amount") for capture in captures), Decimal(0))
    return any_amount(data, "request_amount" if "request_amount" in data else "amount")


def _kept_payment(data: Mapping[str, Any]) -> dict[str, Any]:
    kept = kept_fields(data, _KEPT)
    captures = data.get("captures")
    if isinstance(captures, list):
        kept["captures"] = [
            kept_fields(item, _KEPT_OF_CAPTURE) for item in captures if isinstance(item, dict)
        ]
    return kept


def _dispute(document: Mapping[str, Any], event: str) -> GatewayNotification:
    """Read how a dispute goes. Only its end moves money; before it a person has to answer it."""
    dispute_id = text(document, "id", max_length=128)
    word = text(document, "status", max_length=32)
    payment_id = optional_text(document, "payment_id", max_length=128)
    reference = optional_text(document, "reference_id")
    taken = _taken(document)
    status = _DISPUTE_STATUSES.get(word)
    refunds = (taken,) if word == _LOST else ()
    reason = "" if status else f"{word.lower()}: dispute {dispute_id} of {taken.amount} rupiah"
    parts = (dispute_id, event, optional_text(document, "status_reason", max_length=64))
    return GatewayNotification(
        provider=NAME,
        identity=":".join(["dispute", *parts, f"{taken.refunded_at:%Y-%m-%dT%H:%M:%S}"]),
        transaction_id=payment_id or dispute_id,
        order_reference=reference,
        is_test=reference in _TEST_ORDERS,
        is_dispute=True,
        status=status,
        amount=None,
        currency=_currency(document),
        occurred_at=taken.refunded_at,
        refunds=refunds,
        review_reason=reason,
        payload={"event": event, **kept_fields(document, _KEPT)},
    )


def _taken(dispute: Mapping[str, Any]) -> GatewayRefund:
    """Return what a lost dispute takes: it can be less in the end than at its beginning."""
    amounts = child(dispute, "amount")
    name = "terminal" if amounts.get("terminal") is not None else "initial"
    return GatewayRefund(
        text(dispute, "id", max_length=128),
        any_amount(amounts, name),
        "chargeback",
        _first_moment(dispute, "updated_at", "created_at", "created"),
    )


def _refund(document: Mapping[str, Any]) -> GatewayNotification:
    """Read a refund. It names the payment, not our order; each refund has its own id and amount."""
    data = child(document, "data")
    if "id" not in data and isinstance(data.get("data"), dict):
        data = data["data"]  # the documentation's own example wraps it twice
    refund_id = text(data, "id", max_length=128)
    ids = [optional_text(data, name, max_length=128) for name in ("payment_id", "invoice_id")]
    known_ids = [one for one in ids if one]
    if not known_ids:
        raise Malformed("payment_id", "is missing or empty")
    word = text(data, "status", max_length=32)
    occurred_at = _first_moment(data, "updated", "created", fallback=document)
    return GatewayNotification(
        provider=NAME,
        identity=f"refund:{refund_id}:{word}",
        transaction_id=known_ids[0],
        other_ids=tuple(known_ids[1:]),
        order_reference="",
        status=PaymentStatus.PARTLY_REFUNDED,
        amount=None,
        currency=_currency(data),
        occurred_at=occurred_at,
        channel=label(data, "channel_code"),
        refunds=(GatewayRefund(refund_id, any_amount(data, "amount"), "refund", occurred_at),),
        review_reason="" if word == "SUCCEEDED" else f"{_REFUND_SUCCEEDED} with status {word}",
        payload={"event": _REFUND_SUCCEEDED, **kept_fields(data, _KEPT)},
    )


def _says(document: Mapping[str, Any], moment: datetime) -> bool:
    """Whether a callback says this time itself."""
    parts = [document]
    while isinstance(parts[-1].get("data"), dict):
        parts.append(parts[-1]["data"])
    return any(any_moment(part, name) == moment for part in parts for name in _TIMES)


def _first_moment(
    data: Mapping[str, Any], *names: str, fallback: Mapping[str, Any] | None = None
) -> datetime:
    """Return the first time that is there and can be true, else the time at which it came."""
    moments = [any_moment(data, name) for name in names]
    if fallback is not None:
        moments.append(any_moment(fallback, "created"))
    return next((one for one in moments if one is not None), now())
