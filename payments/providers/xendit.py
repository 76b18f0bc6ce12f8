"""Xendit: who its calls prove to be, and what is asked of it.

One secret header proves the sender; the body is not signed.
"""

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from payments.exceptions import (
    CannotBeAsked,
    GatewayUnavailable,
    InvalidSignature,
    Malformed,
    NotJSON,
    Unreadable,
)
from payments.providers import xendit_calls, xendit_documents
from payments.providers.base import (
    CURRENCY,
    Gateway,
    GatewayNotification,
    Page,
    Purchase,
    RefundState,
    Secret,
)
from payments.providers.document import load_object

if TYPE_CHECKING:
    from payments.models import Payment

_TOKEN_HEADER: Final = "x-callback-token"  # noqa: S105  (the header's name)
#: The ids of invoices; other payments are found by their payment request.
_INVOICE_ID: Final = re.compile(r"[0-9a-f]{24}")


class Xendit(Gateway):
    """The gateway Xendit."""

    name = "xendit"
    secrets = (
        Secret("XENDIT_CALLBACK_TOKEN", "Xendit dashboard, Settings, Webhooks"),
        Secret("XENDIT_SECRET_KEY", "Xendit dashboard, Settings, API Keys", proves_sender=False),
    )
    webhook_summary = "Xendit notifies a payment"
    personal = frozenset(
        {
            "account_number",
            "actions",
            "card",
            "card_details",
            "channel_properties",
            "customer",
            "masked_card_number",
            "metadata",
            "payer_email",
            "payer_name",
            "payment_destination",
            "payment_details",
            "payment_method_details",
        }
    )
    webhook_parameters = (
        {"name": _TOKEN_HEADER, "in": "header", "required": True, "schema": {"type": "string"}},
    )

    dispute_endings = xendit_documents.DISPUTE_ENDINGS

    def verify(self, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        """Check the callback token of the dashboard, then read the body."""
        tokens = self.secrets[0].in_use()
        if not tokens:
            raise InvalidSignature("XENDIT_CALLBACK_TOKEN is empty: nothing can be verified")
        received = headers.get(_TOKEN_HEADER, "").encode("utf-8", "surrogatepass")
        proofs = [hmac.compare_digest(token.encode(), received) for token in tokens]
        if not any(proofs):
            raise InvalidSignature(f"{_TOKEN_HEADER} does not match")
        try:
            return load_object(body)
        except NotJSON:
            raise
        except Malformed as error:
            raise Unreadable(error.field, error.rule) from None

    def create(self, payment: "Payment", purchase: Purchase, *, again: bool = False) -> Page:
        """Open an invoice. Where the first answer was lost, look for what it made: a second invoice
        could be paid as well.
        """
        if again:
            for invoice in xendit_calls.invoices_of(payment.reference):
                if invoice.get("status") != "EXPIRED":
                    return xendit_calls.page_of_invoice(invoice)
        return xendit_calls.create(payment, purchase)

    def status(
        self,
        payment: "Payment",
        *,
        with_refunds: bool = False,
        request_id: str = "",
        dispute_ids: Sequence[str] = (),
    ) -> GatewayNotification | None:
        """Ask for the invoice, or for the payment request that the notification has named."""
        invoice_id = payment.session_id or payment.transaction_id
        answer = None
        try:
            if _INVOICE_ID.fullmatch(invoice_id):
                document = xendit_calls.invoice(invoice_id)
                if document is not None:
                    answer = xendit_documents.invoice(document)
                query = {"invoice_id": invoice_id}
            elif request_id:
                document = xendit_calls.payment_request(request_id)
                if document is not None:
                    answer = xendit_documents.payment_request(document, payment)
                query = {"payment_request_id": request_id}
            else:
                raise CannotBeAsked(
                    self.name, f"about {payment.transaction_id or 'no transaction'}"
                )
            if answer is not None and with_refunds:
                answer = xendit_documents.with_refunds(
                    answer,
                    xendit_calls.refunds_of(**query),
                    filter(None, map(xendit_calls.dispute, dispute_ids)),
                )
        except Malformed as error:
            raise GatewayUnavailable(self.name, f"the status is not as documented: {error}") from (
                None
            )
        return answer and replace(answer, identity=f"asked:{answer.identity}", is_answer=True)

    def newest(self, payment: "Payment") -> GatewayNotification | None:
        """Look for an invoice of our reference whose answer we never got."""
        if payment.session_id or not payment.reference:
            return None
        for document in xendit_calls.invoices_of(payment.reference):
            answer = xendit_documents.invoice(document)
            return replace(answer, identity=f"asked:{answer.identity}", is_answer=True)
        return None

    def cancel(self, payment: "Payment") -> None:
        """Expire the invoice; its status proves it."""
        xendit_calls.expire(payment.session_id or payment.transaction_id)

    def refund(
        self, payment: "Payment", *, key: str, amount_rupiah: int, reason: str
    ) -> RefundState:
        """Ask for a refund of the invoice; it is pending then, and a webhook reports its end."""
        document = xendit_calls.refund(
            {
                "invoice_id": payment.session_id or payment.transaction_id,
                "reference_id": key,
                "amount": amount_rupiah,
                "currency": CURRENCY,
                "reason": "REQUESTED_BY_CUSTOMER",
                "metadata": {"reason": reason[:80]},
            },
            key=key,
        )
        return xendit_documents.refund_state(document)

    def find_refund(self, payment: "Payment", *, key: str) -> RefundState | None:
        """Look for our key among the invoice's refunds."""
        invoice_id = payment.session_id or payment.transaction_id
        for document in xendit_calls.refunds_of(invoice_id=invoice_id):
            if document.get("reference_id") == key:
                return xendit_documents.refund_state(document)
        return None

    def parse(self, document: dict[str, Any]) -> GatewayNotification | None:
        """Return the normal form, or None for another product's event. Raises `Malformed`."""
        return xendit_documents.notification(document)
