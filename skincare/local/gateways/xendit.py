"""Xendit's state and rules: invoices, payment sessions, the payments under them, refunds.

https://developers.xendit.co/api-reference/#invoices
https://docs.xendit.co/apidocs/create-session
https://docs.xendit.co/apidocs/create-refund
"""

import secrets
import threading
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from uuid import uuid4

from skincare.local.gateways.clock import Agenda, Clock, iso
from skincare.local.gateways.webhooks import Webhooks

BUSINESS_ID: Final = "5f27a14a9bf05c73dd040bc8"
_SETTLES_AFTER: Final = 24 * 3600.0  # seconds. GUESS: PAID becomes SETTLED on the next day
_REFUND_TAKES: Final = 60.0  # seconds. GUESS: the documentation says "later"

#: Channel → (payment_method of an invoice, whether the API can refund it).
CHANNELS: Final = {
    "CREDIT_CARD": ("CREDIT_CARD", True),
    "QRIS": ("QR_CODE", True),
    "OVO": ("EWALLET", True),
    "DANA": ("EWALLET", True),
    "BCA": ("BANK_TRANSFER", False),
    "PERMATA": ("BANK_TRANSFER", False),
    "ALFAMART": ("RETAIL_OUTLET", False),
}


class ApiRefusal(Exception):
    """What the API refuses: HTTP status, `error_code`, `message`."""

    def __init__(self, status: int, code: str, message: str = "") -> None:
        super().__init__(status, code)
        self.status = status
        self.code = code
        self.message = message or code.replace("_", " ").capitalize()


@dataclass
class Options:
    """Where the sources contradict each other, or the shop has to bear both.

    invoice_currency: whether invoice callbacks name the currency (older ones do not).
    nested_refund: whether refund webhooks wrap their data twice, as the documentation's example.
    time_digits: digits of the second: 0, 3, 6 or 9.
    refund_fails: a failure code for the next refunds, such as INSUFFICIENT_BALANCE.
    session_first: whether payment_session.completed is sent before payment.capture.
    rate_per_minute: calls to one address in a minute; 60 with a test key, 600 with a live one.
    expire_paid: what expiring a paid invoice answers. GUESS: the SDK says "not found".
    """

    invoice_currency: bool = True
    nested_refund: bool = False
    time_digits: int = 3
    refund_fails: str = ""
    session_first: bool = False
    rate_per_minute: int = 60
    expire_paid: str = "INVOICE_NOT_FOUND_ERROR"


@dataclass
class Payment:
    """Money that was taken, or was not: `id` py-…, `request_id` pr-…"""

    id: str
    request_id: str
    channel: str
    amount: int | float
    at: float
    status: Literal["SUCCEEDED", "FAILED"]


@dataclass
class Invoice:
    """A payment link of the older kind. `status` is PENDING, PAID, SETTLED or EXPIRED."""

    id: str
    asked: dict[str, Any]
    created: float
    updated: float
    expires_at: float
    status: str = "PENDING"
    payment: Payment | None = None

    @property
    def amount(self) -> int | float:
        amount: int | float = self.asked["amount"]
        return amount


@dataclass
class Session:
    """A payment link of the newer kind. `status` is ACTIVE, COMPLETED, EXPIRED or CANCELED."""

    id: str
    asked: dict[str, Any]
    created: float
    updated: float
    expires_at: float
    status: str = "ACTIVE"
    payments: list[Payment] = field(default_factory=list)

    @property
    def paid(self) -> Payment | None:
        return next((p for p in self.payments if p.status == "SUCCEEDED"), None)


@dataclass
class Refund:
    """`status` is PENDING, SUCCEEDED, FAILED or CANCELLED."""

    id: str
    asked: dict[str, Any]
    amount: int | float
    payment: Payment
    invoice_id: str | None
    created: float
    updated: float
    status: str = "PENDING"
    failure_code: str | None = None


def hex_id(prefix: str = "") -> str:
    return prefix + secrets.token_hex(12)


class Xendit:
    """One account in test mode."""

    def __init__(
        self,
        clock: Clock,
        agenda: Agenda,
        webhooks: Webhooks,
        *,
        secret_key: str,
        callback_token: str,
        webhook_url: str,
    ) -> None:
        self._clock = clock
        self._agenda = agenda
        self._webhooks = webhooks
        self.lock = threading.RLock()
        self.secret_key = secret_key
        self.callback_token = callback_token
        self.webhook_url = webhook_url
        self.options = Options()
        self.invoices: dict[str, Invoice] = {}
        self.sessions: dict[str, Session] = {}
        self.refunds: dict[str, Refund] = {}
        self.disputes: dict[str, dict[str, Any]] = {}
        self.customers: dict[str, dict[str, Any]] = {}  # by their own reference
        self.charges: list[str] = []  # our reference of each payment that took money

    # -- Invoices ------------------------------------------------------------------------------

    def create_invoice(self, asked: dict[str, Any]) -> Invoice:
        """A second one with the same external id is another invoice, and can be paid as well."""
        now = self._clock.now()
        invoice = Invoice(
            id=hex_id(),
            asked=asked,
            created=now,
            updated=now,
            expires_at=now + asked.get("invoice_duration", 86400),
        )
        self.invoices[invoice.id] = invoice
        self._agenda.at(invoice.expires_at, lambda: self._expire_unpaid(invoice))
        return invoice

    def find_invoice(self, id_: str) -> Invoice:
        if id_ not in self.invoices:
            raise ApiRefusal(404, "INVOICE_NOT_FOUND_ERROR", "Could not find invoice")
        return self.invoices[id_]

    def expire_invoice(self, invoice: Invoice) -> None:
        with self.lock:
            if invoice.status != "PENDING":
                raise ApiRefusal(404, self.options.expire_paid, "Could not find pending invoice")
            self._end_invoice(invoice)

    def _expire_unpaid(self, invoice: Invoice) -> None:
        with self.lock:
            if invoice.status == "PENDING":
                self._end_invoice(invoice)

    def _end_invoice(self, invoice: Invoice) -> None:
        invoice.status, invoice.updated = "EXPIRED", self._clock.now()
        self.send(self.invoice_callback(invoice))

    def pay_invoice(self, invoice: Invoice, channel: str, *, amount: float | None = None) -> None:
        """Take the money, also after the expiry: banks report late. Amount: default is right.

        GUESS: late money turns an expired invoice into a paid one; the official module for Magento
        takes it so.
        """
        with self.lock:
            if invoice.payment is not None:
                raise ApiRefusal(400, "INVOICE_ALREADY_PAID")
            now = self._clock.now()
            paid = amount if amount is not None else invoice.amount
            invoice.payment = self._payment(channel, paid, now)
            invoice.status, invoice.updated = "PAID", now
            self.charges.append(invoice.asked["external_id"])
            self.send(self.invoice_callback(invoice))
            self._agenda.at(now + _SETTLES_AFTER, lambda: self._settle(invoice))

    def _settle(self, invoice: Invoice) -> None:
        """The money reaches the balance; GUESS: nothing is sent for it."""
        invoice.status, invoice.updated = "SETTLED", self._clock.now()

    def invoice_document(self, invoice: Invoice, url: str) -> dict[str, Any]:
        """Return the invoice as the API answers it."""
        kept = (
            *("payer_email", "description", "items", "fees", "metadata", "customer", "locale"),
            *("success_redirect_url", "failure_redirect_url"),
        )
        document = {
            "id": invoice.id,
            "external_id": invoice.asked["external_id"],
            "user_id": BUSINESS_ID,
            "status": invoice.status,
            "merchant_name": "Toko Skincare",
            "merchant_profile_picture_url": "https://shop.example/logo.png",
            "amount": invoice.amount,
            "currency": invoice.asked.get("currency", "IDR"),
            "expiry_date": self.time(invoice.expires_at),
            "invoice_url": url,
            "available_banks": [],
            "available_retail_outlets": [],
            "available_ewallets": [],
            "available_qr_codes": [],
            "available_direct_debits": [],
            "available_paylaters": [],
            "should_send_email": False,
            "created": self.time(invoice.created),
            "updated": self.time(invoice.updated),
            **{name: invoice.asked[name] for name in kept if name in invoice.asked},
        }
        return document | self._paid_fields(invoice)

    def invoice_callback(self, invoice: Invoice) -> dict[str, Any]:
        """Return the invoice as the webhook has it: flat, without an event's name."""
        document = {
            "id": invoice.id,
            "external_id": invoice.asked["external_id"],
            "user_id": BUSINESS_ID,
            "is_high": False,
            "status": "PAID" if invoice.payment else "EXPIRED",
            "merchant_name": "Toko Skincare",
            "amount": invoice.amount,
            "created": self.time(invoice.created),
            "updated": self.time(invoice.updated),
            **self._paid_fields(invoice),
        }
        if self.options.invoice_currency:
            document["currency"] = invoice.asked.get("currency", "IDR")
        return document

    def _paid_fields(self, invoice: Invoice) -> dict[str, Any]:
        payment = invoice.payment
        if payment is None:
            return {}
        fields = {
            "paid_amount": payment.amount,
            "paid_at": self.time(payment.at),
            "payment_method": CHANNELS[payment.channel][0],
            "payment_channel": payment.channel,
            "payment_id": payment.id,
        }
        kind = CHANNELS[payment.channel][0]
        extra = {"BANK_TRANSFER": "bank_code", "EWALLET": "ewallet_type"}.get(kind)
        return fields | ({extra: payment.channel} if extra else {})

    # -- Payment sessions ----------------------------------------------------------------------

    def create_session(self, asked: dict[str, Any], *, expires_at: float | None = None) -> Session:
        """GUESS: a reference that was used before opens another session."""
        customer = asked.get("customer")
        if customer:
            known = self.customers.setdefault(customer["reference_id"], customer)
            if known != customer:
                raise ApiRefusal(409, "DUPLICATE_ERROR", "customer.reference_id was used before")
        now = self._clock.now()
        session = Session(
            id=hex_id("ps-"),
            asked=asked,
            created=now,
            updated=now,
            expires_at=expires_at or now + 1800,
        )
        self.sessions[session.id] = session
        self._agenda.at(session.expires_at, lambda: self._expire_session(session))
        return session

    def find_session(self, id_: str) -> Session:
        if id_ not in self.sessions:
            raise ApiRefusal(404, "DATA_NOT_FOUND", "Payment session not found")
        return self.sessions[id_]

    def cancel_session(self, session: Session) -> None:
        """Nothing is notified."""
        with self.lock:
            if session.status != "ACTIVE":
                raise ApiRefusal(422, "INVALID_SESSION_STATUS", f"Session is {session.status}")
            session.status, session.updated = "CANCELED", self._clock.now()

    def _expire_session(self, session: Session) -> None:
        with self.lock:
            if session.status == "ACTIVE":
                session.status, session.updated = "EXPIRED", self._clock.now()
                self.send(self._event("payment_session.expired", self.session_document(session)))

    def pay_session(self, session: Session, channel: str, *, fails: bool = False) -> Payment:
        """One try. After a failure the buyer tries again in the same session.

        After the session's end the money is taken all the same, and the session stays as it is:
        banks report late.
        """
        with self.lock:
            now = self._clock.now()
            payment = self._payment(channel, session.asked["amount"], now, fails=fails)
            session.payments.append(payment)
            if fails:
                self.send(self.payment_event(session, payment, "payment.failure"))
                return payment
            self.charges.append(session.asked["reference_id"])
            events = [self.payment_event(session, payment, "payment.capture")]
            if session.status == "ACTIVE":
                session.status, session.updated = "COMPLETED", now
                completed = self._event("payment_session.completed", self.session_document(session))
                events.insert(0 if self.options.session_first else 1, completed)
            for event in events:
                self.send(event)
            return payment

    def session_document(self, session: Session, url: str = "") -> dict[str, Any]:
        names = ("reference_id", "session_type", "mode", "amount", "currency", "country", "items")
        document = {
            "payment_session_id": session.id,
            "status": session.status,
            "business_id": BUSINESS_ID,
            "created": self.time(session.created),
            "updated": self.time(session.updated),
            "expires_at": self.time(session.expires_at),
            "payment_request_id": session.paid.request_id if session.paid else None,
            "payment_id": session.paid.id if session.paid else None,
            **{name: session.asked[name] for name in names if name in session.asked},
        }
        return document | ({"payment_link_url": url} if url else {})

    def payment_event(self, session: Session, payment: Payment, event: str) -> dict[str, Any]:
        """Return the Payments API's event of one try."""
        data = self.payment_document(payment, session.asked["reference_id"])
        if payment.status == "FAILED":
            data["failure_code"] = "INSUFFICIENT_BALANCE"
        return self._event(event, data) | {"api_version": "v3"}

    def payment_document(self, payment: Payment, reference: str) -> dict[str, Any]:
        document: dict[str, Any] = {
            "payment_id": payment.id,
            "payment_request_id": payment.request_id,
            "reference_id": reference,
            "status": payment.status,
            "type": "PAY",
            "country": "ID",
            "currency": "IDR",
            "request_amount": payment.amount,
            "channel_code": payment.channel,
            "created": self.time(payment.at),
            "updated": self.time(payment.at),
        }
        if payment.status == "SUCCEEDED":
            document["captures"] = [
                {
                    "capture_id": f"cptr-{payment.id[3:]}",
                    "capture_amount": payment.amount,
                    "capture_timestamp": self.time(payment.at),
                }
            ]
        return document

    # -- Refunds -------------------------------------------------------------------------------

    def refund(self, asked: dict[str, Any]) -> Refund:
        """Start a refund; it ends later, with a webhook."""
        invoice = self.invoices.get(asked.get("invoice_id", ""))
        payment = invoice.payment if invoice else self._payment_of(asked.get("payment_request_id"))
        if payment is None or payment.status != "SUCCEEDED":
            raise ApiRefusal(404, "DATA_NOT_FOUND", "No payment to refund")
        if not CHANNELS[payment.channel][1]:
            raise ApiRefusal(403, "REFUND_NOT_SUPPORTED", f"{payment.channel} has no refunds")
        done = [r for r in self.refunds.values() if r.payment is payment]
        left = payment.amount - sum(r.amount for r in done if r.status in ("PENDING", "SUCCEEDED"))
        amount = asked.get("amount") or left
        if not 0 < amount <= left:
            raise ApiRefusal(400, "MAXIMUM_REFUND_AMOUNT_REACHED", f"{left} is left")
        now = self._clock.now()
        refund = Refund(
            id=f"rfd-{uuid4()}",
            asked=asked,
            amount=amount,
            payment=payment,
            invoice_id=invoice.id if invoice else None,
            created=now,
            updated=now,
        )
        self.refunds[refund.id] = refund
        self._agenda.at(now + _REFUND_TAKES, lambda: self._end_refund(refund))
        return refund

    def _payment_of(self, request_id: str | None) -> Payment | None:
        payments = [p for session in self.sessions.values() for p in session.payments]
        return next((p for p in payments if p.request_id == request_id), None)

    def _end_refund(self, refund: Refund) -> None:
        with self.lock:
            if refund.status != "PENDING":
                return
            refund.failure_code = self.options.refund_fails or None
            refund.status = "FAILED" if refund.failure_code else "SUCCEEDED"
            refund.updated = self._clock.now()
            data = self.refund_document(refund)
            if self.options.nested_refund:
                data = {"data": data}
            self.send(self._event(f"refund.{refund.status.lower()}", data))

    def cancel_refund(self, refund: Refund) -> None:
        with self.lock:
            if refund.status != "PENDING":
                raise ApiRefusal(400, "INELIGIBLE_TRANSACTION_STATUS")
            refund.status, refund.updated = "CANCELLED", self._clock.now()

    def refund_document(self, refund: Refund) -> dict[str, Any]:
        return {
            "id": refund.id,
            "payment_id": refund.payment.id,
            "payment_request_id": refund.payment.request_id,
            "invoice_id": refund.invoice_id,
            "payment_method_type": CHANNELS[refund.payment.channel][0],
            "amount": refund.amount,
            "channel_code": refund.payment.channel,
            "country": "ID",
            "currency": "IDR",
            "reference_id": refund.asked.get("reference_id"),
            "reason": refund.asked["reason"],
            "status": refund.status,
            "failure_code": refund.failure_code,
            "refund_fee_amount": None,
            "created": self.time(refund.created),
            "updated": self.time(refund.updated),
            "metadata": refund.asked.get("metadata"),
        }

    # -- Disputes ------------------------------------------------------------------------------

    def raise_dispute(self, payment: Payment, reference: str) -> None:
        """The buyer tells the bank that the payment is wrong.

        https://docs.xendit.co/apidocs/dispute-webhook-notifications
        """
        now = self.time(self._clock.now())
        raised: dict[str, Any] = {
            "id": f"mi-dspt-{uuid4()}",
            "channel_code": "CARDS",
            "status": "ACTION_REQUIRED",
            "status_reason": None,
            "currency": "IDR",
            "amount": {"initial": f"{payment.amount:.2f}", "terminal": None},  # texts
            "created_at": now,
            "updated_at": now,
            "due_date": now,
            "related_disputes": [],
            "payment_id": payment.id,
            "reference_id": reference,
        }
        self.disputes[raised["id"]] = raised
        self.send({"event": "dispute.action_required", **raised})

    def end_dispute(self, payment: Payment, *, status: str, rupiah: int | None = None) -> None:
        """The bank decides: LOST or WON, for all of it or for some rupiah."""
        disputed = [one for one in self.disputes.values() if one["payment_id"] == payment.id]
        if not disputed:
            raise ApiRefusal(400, "ILLEGAL_STATE", "no dispute was raised")
        found = disputed[-1]
        terminal = f"{rupiah}.00" if rupiah else found["amount"]["initial"]
        found["amount"] = found["amount"] | {"terminal": terminal}
        found |= {"status": status, "updated_at": self.time(self._clock.now())}
        self.send({"event": f"dispute.{status.lower()}", **found})

    # -- What is common ------------------------------------------------------------------------

    def send(self, document: dict[str, Any], *, token: str | None = None) -> None:
        """Call the shop. token: default is the account's."""
        headers = {
            "x-callback-token": self.callback_token if token is None else token,
            "webhook-id": str(uuid4()),
        }
        self._webhooks.send("xendit", self.webhook_url, document, headers=headers)

    def time(self, moment: float) -> str:
        return iso(self._clock.shown(moment), self.options.time_digits)

    def _event(self, event: str, data: dict[str, Any]) -> dict[str, Any]:
        return {
            "event": event,
            "business_id": BUSINESS_ID,
            "created": self.time(self._clock.now()),
            "data": data,
        }

    def _payment(self, channel: str, amount: float, now: float, *, fails: bool = False) -> Payment:
        return Payment(
            id=f"py-{uuid4()}",
            request_id=f"pr-{uuid4()}",
            channel=channel,
            amount=amount,
            at=now,
            status="FAILED" if fails else "SUCCEEDED",
        )
