"""Midtrans: a signed JSON document per change of a transaction.

https://docs.midtrans.com/docs/https-notification-webhooks
https://docs.midtrans.com/docs/transaction-status-cycle
https://docs.midtrans.com/reference/refund-transactions-card (the shape of `refunds`)
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal

from django.utils.timezone import now

from payments.exceptions import (
    GatewayRefused,
    GatewayUnavailable,
    InvalidSignature,
    Malformed,
    NotCancellable,
    NotJSON,
    NotRefundable,
    Unreadable,
)
from payments.providers import midtrans_calls
from payments.providers.base import (
    Gateway,
    GatewayNotification,
    GatewayRefund,
    Page,
    Purchase,
    RefundState,
    Secret,
)
from payments.providers.document import (
    any_amount,
    any_moment,
    any_text,
    kept_fields,
    load_object,
    load_signed,
    optional_text,
    text,
    told,
)
from payments.status import REFUND, PaymentStatus

if TYPE_CHECKING:
    from payments.models import Payment

#: Midtrans writes times without an offset, in Jakarta's time (UTC+7, no daylight saving).
_JAKARTA: Final = timezone(timedelta(hours=7))
#: Midtrans lets a payment page live for a week at most; more is a mistake.
_LONGEST_WINDOW: Final = timedelta(days=8)
_SIGNED: Final = ("order_id", "status_code", "gross_amount")
#: The order of the dashboard's test notification, which is signed like a real one.
_TEST_ORDER: Final = "payment_notif_test_"
_REFUNDS_KEPT: Final = 100
_SUCCESS: Final = "200"

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


class Midtrans(Gateway):
    """The gateway Midtrans."""

    name = "midtrans"
    secrets = (Secret("MIDTRANS_SERVER_KEY", "Midtrans dashboard, Settings, Access Keys"),)
    webhook_summary = "Midtrans notifies a transaction"
    personal = frozenset(
        {
            "signature_key",
            "masked_card",
            "approval_code",
            "va_numbers",
            "permata_va_number",
            "biller_code",
            "bill_key",
            "payment_code",
            "customer_details",
            "payer_phone_number",
            "shopeepay_reference_number",
            "saved_token_id",
            "metadata",
        }
    )

    def create(self, payment: "Payment", purchase: Purchase, *, again: bool = False) -> Page:
        """Open a Snap page. Where the first answer was lost, the same reference gets a new page."""
        return midtrans_calls.create(payment, purchase)

    def status(
        self, payment: "Payment", *, with_refunds: bool = False, request_id: str = ""
    ) -> GatewayNotification | None:
        """Ask by the transaction's id where we know it: some methods are found by nothing else."""
        document = midtrans_calls.status(_id_of(payment))
        return self._answer(payment, document)

    def newest(self, payment: "Payment") -> GatewayNotification | None:
        """Ask by our reference."""
        return self._answer(payment, midtrans_calls.status(_reference_of(payment)))

    def cancel(self, payment: "Payment") -> None:
        """Cancel the transaction; where there is none yet, close the page."""
        if midtrans_calls.cancel(_id_of(payment)) or not payment.session_id:
            return
        try:
            midtrans_calls.cancel_page(payment.session_id)
        except NotCancellable:
            # The buyer may have picked a way to pay between the two calls.
            if not midtrans_calls.cancel(_id_of(payment)):
                raise

    def refund(
        self, payment: "Payment", *, key: str, amount_rupiah: int, reason: str
    ) -> RefundState:
        """Ask for a refund; where the key was used before, say what became of that one.

        A captured card is refundable as soon as it is settled, with the next day's batch.
        """
        try:
            document = midtrans_calls.refund(
                _id_of(payment), key=key, amount_rupiah=amount_rupiah, reason=reason
            )
        except NotRefundable:
            answer = self.status(payment)
            if answer is not None and answer.status is PaymentStatus.CAPTURED:
                raise GatewayUnavailable(self.name, "it is not settled yet") from None
            raise
        if document is None:
            found = self.find_refund(payment, key=key)
            if found is None:
                raise GatewayRefused(self.name, "the refund's key was used for something else")
            return found
        done = document.get("status_code") == _SUCCESS
        return RefundState(
            key=key,
            status="succeeded" if done else "failed",
            amount=Decimal(amount_rupiah),
            reason="" if done else told(document.get("status_message", "")),
        )

    def find_refund(self, payment: "Payment", *, key: str) -> RefundState | None:
        """Look for it among the refunds that the status lists."""
        answer = self.status(payment)
        for refund in answer.refunds if answer else ():
            if refund.key == key and refund.amount is not None:
                return RefundState(key=key, status="succeeded", amount=refund.amount)
        return None

    def _answer(
        self, payment: "Payment", document: dict[str, Any] | None
    ) -> GatewayNotification | None:
        """Return the normal form of a status. Raises `GatewayUnavailable` where it has none."""
        if document is None:
            return None
        try:
            answer = self.parse(document)
        except Malformed as error:
            raise GatewayUnavailable(self.name, f"the status is not as documented: {error}") from (
                None
            )
        if answer.order_reference == answer.transaction_id:
            answer = replace(answer, order_reference=_reference_of(payment))
        return replace(answer, identity=f"asked:{answer.identity}", is_answer=True)

    def verify(self, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """Check `signature_key`: lower-case hex SHA-512 over three of the strings and our key.

        It covers neither transaction_status nor fraud_status, so `parse` looks for contradictions.
        """
        try:
            document = load_object(body)
        except NotJSON:
            raise
        except Malformed as error:
            self._prove(load_signed(body))
            raise Unreadable(error.field, error.rule) from None
        self._prove(document)
        return document

    def _prove(self, document: Mapping[str, Any]) -> None:
        signed = "".join(_signed(document, name) for name in _SIGNED)
        keys = self.secrets[0].in_use()
        if not keys:
            raise InvalidSignature("MIDTRANS_SERVER_KEY is empty: nothing can be verified")
        received = document.get("signature_key")
        text_of_key = received if isinstance(received, str) else ""
        given = text_of_key.encode("utf-8", "surrogatepass")
        proofs = [
            hmac.compare_digest(
                hashlib.sha512((signed + key).encode("utf-8", "surrogatepass"))
                .hexdigest()
                .encode(),
                given,
            )
            for key in keys
        ]
        if not any(proofs):
            raise InvalidSignature("signature_key does not match")

    def parse(self, document: dict[str, Any]) -> GatewayNotification:
        """Return the normal form. Raises `Malformed`."""
        word = text(document, "transaction_status", max_length=24).lower()  # DANA's are in capitals
        status_code = text(document, "status_code", max_length=8)
        fraud_status = any_text(document, "fraud_status", max_length=16).lower()
        transaction_id = text(document, "transaction_id", max_length=128)
        order_reference = _order_reference(document, transaction_id)
        occurred_at = _occurred_at(document)
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
            provider=self.name,
            identity=":".join(parts),
            transaction_id=transaction_id,
            order_reference=order_reference,
            status=status,
            amount=any_amount(document, "gross_amount"),
            # Documented for every notification, yet older payment types leave it out.
            currency=optional_text(document, "currency", max_length=8) or "IDR",
            occurred_at=occurred_at,
            channel=optional_text(document, "payment_type", max_length=64),
            refunds=refunds,
            review_reason=review_reason,
            expires_at=_expires_at(document),
            is_test=order_reference.startswith(_TEST_ORDER),
            payload=_kept(document),
        )


def _signed(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    if value is None or value == "":
        raise Malformed(name, "is missing or empty")
    if not isinstance(value, str):
        raise Malformed(name, "must be a JSON string")
    return value


def _id_of(payment: "Payment") -> str:
    return payment.transaction_id or _reference_of(payment)


def _reference_of(payment: "Payment") -> str:
    """Return our reference; orders from before there were attempts went by their own id."""
    return payment.reference or str(payment.order_id)


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
    if is_money and status_code != _SUCCESS:
        return status, f"{word} with status_code {status_code}"
    return status, ""


def _occurred_at(document: Mapping[str, Any]) -> datetime:
    """Return when it happened; where the document does not say it, when it came."""
    for name in ("settlement_time", "transaction_time"):
        found = any_moment(document, name, offset=_JAKARTA)
        if found is not None:
            return found
    return now()


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
