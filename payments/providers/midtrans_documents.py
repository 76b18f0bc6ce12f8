"""Midtrans's documents in the normal form: notifications and answers have one shape.

https://docs.midtrans.com/docs/https-notification-webhooks
https://docs.midtrans.com/docs/transaction-status-cycle
https://docs.midtrans.com/reference/refund-transactions-card (the shape of `refunds`)
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Final, Literal

from django.utils.timezone import now

from payments.exceptions import Malformed
from payments.providers.base import GatewayNotification, GatewayRefund
from payments.providers.document import (
    any_amount,
    any_moment,
    any_text,
    kept_fields,
    label,
    optional_text,
    text,
)
from payments.providers.midtrans_calls import NAME
from payments.status import REFUND, PaymentStatus

#: Midtrans writes times without an offset, in Jakarta's time (UTC+7, no daylight saving).
_JAKARTA: Final = timezone(timedelta(hours=7))
#: Midtrans lets a payment page live for a week at most; more is a mistake.
_LONGEST_WINDOW: Final = timedelta(days=8)
#: The order of the dashboard's test notification, which is signed like a real one.
_TEST_ORDER: Final = "payment_notif_test_"
_REFUNDS_KEPT: Final = 100
SUCCESS: Final = "200"
#: Of a refund: the bank has refused it, and the money stays where it is.
REFUSED_BY_BANK: Final = "202"

_STATUSES: Final[Mapping[str, PaymentStatus]] = {
    "pending": PaymentStatus.PENDING,
    "authorize": PaymentStatus.AUTHORIZED,
    "capture": PaymentStatus.CAPTURED,
    "settlement": PaymentStatus.SETTLED,
    "deny": PaymentStatus.DENIED,
    "cancel": PaymentStatus.CANCELLED,
    "expire": PaymentStatus.EXPIRED,
    "failure": PaymentStatus.FAILED,
    "refund": PaymentStatus.REFUNDED,
    "partial_refund": PaymentStatus.PARTLY_REFUNDED,
    "chargeback": PaymentStatus.REFUNDED,
    "partial_chargeback": PaymentStatus.PARTLY_REFUNDED,
}

#: What is kept. Not kept, though sent: signature_key, masked_card, approval_code, va_numbers,
#: customer_details, payer_phone_number, metadata and whatever Midtrans adds later.
_KEPT: Final = frozenset(
    {
        "transaction_time",
        "transaction_status",
        "transaction_id",
        "status_message",
        "status_code",
        "settlement_time",
        "expiry_time",
        "payment_type",
        "order_id",
        "merchant_id",
        "gross_amount",
        "fraud_status",
        "currency",
        "bank",
        "acquirer",
        "issuer",
        "store",
        "refund_amount",
        "refund_key",
    }
)
_KEPT_OF_REFUND: Final = frozenset(
    {
        "refund_chargeback_id",
        "refund_chargeback_uuid",
        "refund_amount",
        "refund_key",
        "refund_method",
        "created_at",
        "bank_confirmed_at",
    }
)


def notification(document: Mapping[str, Any]) -> GatewayNotification:
    """Return what a notification, or the answer to a question, says. Raises `Malformed`."""
    word = text(document, "transaction_status", max_length=24).lower()  # DANA's are in capitals
    status_code = text(document, "status_code", max_length=8)
    fraud_status = any_text(document, "fraud_status", max_length=16).lower()
    transaction_id = text(document, "transaction_id", max_length=128)
    order_reference = _order_reference(document, transaction_id)
    said_at = _said_at(document)
    occurred_at = said_at or now()
    refunds = _refunds(document, word, occurred_at)
    status, review_reason = _read_status(word, status_code, fraud_status)
    if status in REFUND and not refunds and not review_reason:
        review_reason = f"{word} without an amount"
    parts = [transaction_id, word, status_code]
    if fraud_status:
        parts.append(fraud_status)
    if status in REFUND:
        parts.append(_refund_identity(document, refunds))
    return GatewayNotification(
        provider=NAME,
        identity=":".join(parts),
        transaction_id=transaction_id,
        order_reference=order_reference,
        status=status,
        amount=any_amount(document, "gross_amount"),
        # Documented for every notification, yet older payment types leave it out.
        currency=optional_text(document, "currency", max_length=8).upper()[:8] or "IDR",
        occurred_at=occurred_at,
        is_timed=said_at is not None,
        channel=label(document, "payment_type"),
        refunds=refunds,
        review_reason=review_reason,
        expires_at=_expires_at(document),
        came_in_at=any_moment(document, "settlement_time", offset=_JAKARTA),
        is_test=order_reference.startswith(_TEST_ORDER),
        payload=_kept(document),
    )


def _order_reference(document: Mapping[str, Any], transaction_id: str) -> str:
    """Return our reference. Some bank transfers have the transaction's id in its place:
    https://github.com/Midtrans/midtrans-php/issues/121
    """
    order_id = text(document, "order_id")
    if order_id != transaction_id:
        return order_id
    return optional_text(document, "custom_field1", max_length=64) or order_id


def _read_status(
    word: str, status_code: str, fraud_status: str
) -> tuple[PaymentStatus | None, str]:
    """Return the status and why it is doubtful ("" where it is not).

    Paid is only: status_code 200 with settlement, or with capture and fraud_status accept.
    """
    status = _STATUSES.get(word)
    if status is None:
        return None, f"unknown transaction_status {word}"
    if status in (PaymentStatus.CAPTURED, PaymentStatus.AUTHORIZED):
        if fraud_status == "challenge":
            return PaymentStatus.CHALLENGED, ""
        if fraud_status == "deny":
            return PaymentStatus.DENIED, ""
        if fraud_status != "accept" and status is PaymentStatus.CAPTURED:
            return status, f"capture with fraud_status {fraud_status or 'missing'}"
    is_money = status in (PaymentStatus.CAPTURED, PaymentStatus.SETTLED, *REFUND)
    if is_money and status_code != SUCCESS:
        return status, f"{word} with status_code {status_code}"
    return status, ""


def _said_at(document: Mapping[str, Any]) -> datetime | None:
    """Return when it happened, where the document says it."""
    moments = (
        any_moment(document, name, offset=_JAKARTA)
        for name in ("settlement_time", "transaction_time")
    )
    return next((one for one in moments if one is not None), None)


def _expires_at(document: Mapping[str, Any]) -> datetime | None:
    """Return until when the buyer can pay, where that can be true."""
    found = any_moment(document, "expiry_time", offset=_JAKARTA)
    return found if found is not None and found <= now() + _LONGEST_WINDOW else None


def _refunds(
    document: Mapping[str, Any], word: str, occurred_at: datetime
) -> tuple[GatewayRefund, ...]:
    """Return the refunds that the document lists: each keeps its own key and amount forever.

    The `refund_amount` beside the list is their sum. Without a list, a `refund_key` names the one
    refund that is reported; a full refund or chargeback without either is all that is left.
    """
    if _STATUSES.get(word) not in REFUND:
        return ()
    kind: Literal["refund", "chargeback"] = "chargeback" if "chargeback" in word else "refund"
    listed = document.get("refunds")
    if listed is not None:
        if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
            raise Malformed("refunds", "must be a list of JSON objects")
        if listed:
            return tuple(_listed_refund(item, kind, occurred_at) for item in listed)
    key = any_text(document, "refund_key", max_length=128)
    if key and document.get("refund_amount") is not None:
        return (GatewayRefund(key, any_amount(document, "refund_amount"), kind, occurred_at),)
    if word in ("refund", "chargeback"):
        return (GatewayRefund(key or word, None, kind, occurred_at),)
    return ()


def _listed_refund(
    item: Mapping[str, Any], kind: Literal["refund", "chargeback"], occurred_at: datetime
) -> GatewayRefund:
    key = any_text(item, "refund_key", max_length=128) or any_text(
        item, "refund_chargeback_uuid", max_length=128
    )
    number = any_text(item, "refund_chargeback_id", max_length=64)
    if not key and number:
        key = f"refund_chargeback_id-{number}"
    if not key:
        raise Malformed("refunds", "must name a refund_key for each refund")
    refunded_at = any_moment(item, "created_at", offset=_JAKARTA) or occurred_at
    return GatewayRefund(key, any_amount(item, "refund_amount"), kind, refunded_at)


def _refund_identity(document: Mapping[str, Any], refunds: tuple[GatewayRefund, ...]) -> str:
    """Return what distinguishes two notifications whose refunds differ, 1 to 64 characters.

    It is the one key, or the digest of several; without any, it is the sum.
    """
    keys = sorted(refund.key for refund in refunds)
    if not keys:
        return any_text(document, "refund_amount", max_length=32) or "-"
    if len(keys) == 1 and len(keys[0]) <= 64:
        return keys[0]
    return hashlib.sha256("\n".join(keys).encode()).hexdigest()


def _kept(document: Mapping[str, Any]) -> dict[str, Any]:
    kept = kept_fields(document, _KEPT)
    listed = document.get("refunds")
    if isinstance(listed, list):
        kept["refunds"] = [
            kept_fields(item, _KEPT_OF_REFUND)
            for item in listed[:_REFUNDS_KEPT]
            if isinstance(item, dict)
        ]
    return kept
