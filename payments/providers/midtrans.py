"""Midtrans: who its calls prove to be, and what is asked of it.

https://docs.midtrans.com/docs/https-notification-webhooks (the signature)
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

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
from payments.providers import midtrans_calls, midtrans_documents
from payments.providers.base import (
    Gateway,
    GatewayNotification,
    Page,
    Purchase,
    RefundState,
    Secret,
)
from payments.providers.document import load_object, load_signed, told
from payments.status import PaymentStatus

if TYPE_CHECKING:
    from payments.models import Payment

_SIGNED: Final = ("order_id", "status_code", "gross_amount")
_PROOF: Final = (*_SIGNED, "signature_key")


class Midtrans(Gateway):
    """The gateway Midtrans."""

    name = "midtrans"
    secrets = (Secret("MIDTRANS_SERVER_KEY", "Midtrans dashboard, Settings, Access Keys"),)
    webhook_summary = "Midtrans notifies a transaction"
    webhook_body = {
        "type": "object",
        "properties": {name: {"type": "string", "minLength": 1} for name in _PROOF},
        "required": list(_PROOF),
    }
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
        self,
        payment: "Payment",
        *,
        with_refunds: bool = False,
        request_id: str = "",
        dispute_ids: Sequence[str] = (),
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
        code = told(document.get("status_code"), max_length=8)
        if code not in (midtrans_documents.SUCCESS, midtrans_documents.REFUSED_BY_BANK):
            # Whoever takes it for failed may give the money back once more.
            raise GatewayUnavailable(self.name, f"a refund with status_code {code}")
        done = code == midtrans_documents.SUCCESS
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
        return midtrans_documents.notification(document)


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
