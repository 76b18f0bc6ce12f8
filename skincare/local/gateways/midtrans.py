"""Midtrans's state and rules: Snap sessions, the transactions under them, refunds, notifications.

One order id can have several transactions, each with its own state: a denied card, then a paid one.

https://docs.midtrans.com/docs/transaction-status-cycle
https://docs.midtrans.com/docs/https-notification-webhooks
"""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any, Final
from uuid import uuid4

from skincare.local.gateways.clock import Agenda, Clock, wib
from skincare.local.gateways.midtrans_methods import CARDS, METHODS, Method
from skincare.local.gateways.webhooks import Webhooks

MERCHANT_ID: Final = "G141532850"
_CARD_SETTLES_AFTER: Final = 24 * 3600.0  # seconds. GUESS: with the next day's batch
_BANK_CONFIRMS_AFTER: Final = 60.0  # seconds. GUESS: the documentation says "later"

#: What each state may become. https://docs.midtrans.com/docs/transaction-status-cycle
#: GUESS: expire → settlement. No source says whether money can come in after the expiry under the
#: same transaction; a shop has to bear it.
TRANSITIONS: Final[Mapping[str, frozenset[str]]] = {
    "pending": frozenset({"settlement", "capture", "deny", "cancel", "expire"}),
    "authorize": frozenset({"capture", "deny", "cancel", "expire"}),
    "capture": frozenset({"settlement", "cancel", "deny"}),
    "settlement": frozenset(
        {"refund", "partial_refund", "chargeback", "partial_chargeback", "deny"}
    ),
    "partial_refund": frozenset({"refund", "partial_refund"}),
    "partial_chargeback": frozenset({"chargeback"}),
    "expire": frozenset({"settlement"}),
}
_PAID: Final = frozenset(
    {
        "capture",
        "settlement",
        "refund",
        "partial_refund",
        "chargeback",
        "partial_chargeback",
    }
)


class CoreRefusal(Exception):
    """What the Core API refuses: its `status_code` and `status_message`."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


class SnapRefusal(Exception):
    """What Snap refuses: an HTTP status and sentences, without a code for machines."""

    def __init__(self, status: int, *messages: str) -> None:
        super().__init__(status, messages)
        self.status = status
        self.messages = messages


def not_found() -> CoreRefusal:
    return CoreRefusal(404, "Transaction doesn't exist.")


def not_modifiable() -> CoreRefusal:
    return CoreRefusal(412, "Merchant cannot modify the status of the transaction")


@dataclass
class Options:
    """Where the sources contradict each other, or the shop has to bear both.

    errors_as_200: the Core API's 404, 412, 414 and 406 come under HTTP 200. The OpenAPI document
    files them there; GUESS: by default they are real statuses.
    duplicate_text: which of the three sentences answers a used order id.
    replay_refund_key: the same refund key gets its first answer; otherwise 406.
    """

    errors_as_200: bool = False
    duplicate_text: int = 0
    replay_refund_key: bool = False


DUPLICATE_TEXTS: Final = (
    "transaction_details.order_id has already been taken",
    "transaction_details.order_id sudah digunakan",
    "transaction_details.order_id has been paid and utilized, please use another order_id",
)


@dataclass
class Transaction:
    """One try to pay, with its own id and state."""

    id: str
    order_id: str
    method: Method
    amount: int  # rupiah
    time: float
    expires_at: float
    state: str
    fraud_status: str | None
    extra: dict[str, object]
    notify_urls: list[str]
    settled_at: float | None = None
    refunds: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_paid(self) -> bool:
        return self.state in _PAID

    @property
    def refunded(self) -> int:
        return sum(int(refund["refund_amount"].split(".")[0]) for refund in self.refunds)


@dataclass
class Session:
    """One Snap token, its page and what was asked for with it."""

    token: str
    order_id: str
    amount: int  # rupiah
    asked: dict[str, Any]
    page_expires_at: float
    notify_urls: list[str]
    state: str = "open"  # or: revoked, cancelled
    transactions: list[Transaction] = field(default_factory=list)


class Midtrans:
    """One merchant's account in the sandbox."""

    def __init__(
        self, clock: Clock, agenda: Agenda, webhooks: Webhooks, *, server_key: str, webhook_url: str
    ) -> None:
        self._clock = clock
        self._agenda = agenda
        self._webhooks = webhooks
        self.lock = threading.RLock()
        self.server_key = server_key
        self.webhook_url = webhook_url
        self.options = Options()
        self.sessions: dict[str, Session] = {}
        self.transactions: list[Transaction] = []
        self._refund_numbers = count(1)
        self.charges: list[str] = []  # the order id of each payment that took money

    # -- Snap ----------------------------------------------------------------------------------

    def create_session(self, asked: dict[str, Any], *, notify_urls: list[str]) -> Session:
        """Open a page for an order id; an older page that nobody used is revoked."""
        order_id, amount = asked["transaction_details"]["order_id"], _amount(asked)
        used = [t for t in self.transactions if t.order_id == order_id]
        # Cancelled and expired ids may be used again. GUESS: so may those that were only denied.
        if any(t.is_paid or t.state in ("pending", "authorize") for t in used):
            raise SnapRefusal(400, DUPLICATE_TEXTS[self.options.duplicate_text])
        for older in self.sessions.values():
            if older.order_id == order_id and older.state == "open":
                older.state = "revoked"
        session = Session(
            token=str(uuid4()),
            order_id=order_id,
            amount=amount,
            asked=asked,
            page_expires_at=self._clock.now() + _page_seconds(asked),
            notify_urls=notify_urls,
        )
        self.sessions[session.token] = session
        return session

    def cancel_session(self, token: str) -> float:
        """Close a page on which nobody has picked a method; returns when. Nothing is notified.

        GUESS: the HTTP statuses of its refusals.
        """
        session = self.sessions.get(token)
        if session is None:
            raise SnapRefusal(404, "token not found")
        if session.state != "open":
            raise SnapRefusal(409, "token already canceled")
        if session.transactions:
            raise SnapRefusal(409, "transaction in progress")
        session.state = "cancelled"
        return self._clock.now()

    def page_is_open(self, session: Session) -> bool:
        """Whether a buyer can pick a method or try another card there now."""
        return (
            session.state == "open"
            and self._clock.now() < session.page_expires_at
            and all(t.state == "deny" for t in session.transactions)
        )

    # -- What the buyer and the banks do --------------------------------------------------------

    def pick(self, session: Session, method_name: str, *, card: str = "") -> Transaction:
        """The buyer picks a way to pay; with a card the bank answers at once."""
        if not self.page_is_open(session):
            raise not_modifiable()
        method, now = METHODS[method_name], self._clock.now()
        transaction = Transaction(
            id=str(uuid4()),
            order_id=session.order_id,
            method=method,
            amount=session.amount,
            time=now,
            expires_at=self._expires_at(session.asked, method, now),
            state="pending",
            fraud_status="accept" if method.has_fraud_status else None,
            extra=method.fields() | _custom_fields(session.asked),
            notify_urls=session.notify_urls,
        )
        session.transactions.append(transaction)
        self.transactions.append(transaction)
        if method_name == "credit_card" and card:
            self._charge_card(transaction, CARDS[card.replace(" ", "")])
        else:
            self.notify(transaction)
            self._agenda.at(transaction.expires_at, lambda: self._expire_unpaid(transaction))
        return transaction

    def _expires_at(self, asked: Mapping[str, Any], method: Method, picked_at: float) -> float:
        """Without a start time the clock starts when the method is picked."""
        expiry = asked.get("expiry")
        if not expiry:
            return picked_at + method.minutes * 60.0
        start = picked_at
        if "start_time" in expiry:
            told = datetime.strptime(expiry["start_time"], "%Y-%m-%d %H:%M:%S %z")
            start = self._clock.told(told.timestamp())
        return start + _seconds(expiry)

    def _charge_card(self, transaction: Transaction, verdict: str) -> None:
        if verdict.startswith("deny"):
            transaction.fraud_status = "deny" if "fraud" in verdict else "accept"
            self.become(transaction, "deny")
            return
        transaction.fraud_status = verdict
        self.become(transaction, "capture")

    def become(self, transaction: Transaction, state: str) -> None:
        """Change the state as the bank or the clock says, and notify it."""
        with self.lock:
            if state not in TRANSITIONS.get(transaction.state, frozenset()):
                raise not_modifiable()
            was_paid = transaction.is_paid
            transaction.state = state
            if state == "settlement":
                transaction.settled_at = self._clock.now()
            if state == "capture":
                settles = self._clock.now() + _CARD_SETTLES_AFTER
                self._agenda.at(settles, lambda: self._settle_card(transaction))
            if transaction.is_paid and not was_paid:
                self.charges.append(transaction.order_id)
            self.notify(transaction)

    def _settle_card(self, transaction: Transaction) -> None:
        if transaction.state == "capture" and transaction.fraud_status == "accept":
            self.become(transaction, "settlement")

    def _expire_unpaid(self, transaction: Transaction) -> None:
        if transaction.state in ("pending", "authorize"):
            self.become(transaction, "expire")

    def charge_back(self, transaction: Transaction, amount: int | None = None) -> None:
        """The buyer's bank takes the money of a card payment back, or `amount` rupiah of it."""
        whole = amount is None or amount == transaction.amount
        if "chargeback" not in TRANSITIONS.get(transaction.state, frozenset()):
            raise not_modifiable()
        self._add_refund(transaction, amount or transaction.amount, key="", reason="chargeback")
        self.become(transaction, "chargeback" if whole else "partial_chargeback")

    def win_dispute(self, transaction: Transaction) -> None:
        """The bank gives back what it charged back.

        GUESS: the transaction is settled again, as the reference says of a partial chargeback.
        """
        self._settle_again(transaction, after=("chargeback", "partial_chargeback"))

    def return_refund(self, transaction: Transaction) -> None:
        """The buyer's bank does not take a refund: the transaction is settled again.

        https://docs.midtrans.com/reference/transaction-status
        """
        self._settle_again(transaction, after=("refund", "partial_refund"))

    def _settle_again(self, transaction: Transaction, *, after: Sequence[str]) -> None:
        if transaction.state not in after:
            raise not_modifiable()
        transaction.refunds.clear()
        transaction.state = "settlement"
        self.notify(transaction)

    # -- Core API ------------------------------------------------------------------------------

    def find(self, id_: str) -> Transaction:
        """Return the transaction of this id, or the newest of this order id (GUESS: the newest)."""
        for transaction in reversed(self.transactions):
            by_order = transaction.order_id == id_ and not transaction.method.by_transaction
            if transaction.id == id_ or by_order:
                return transaction
        raise not_found()

    def cancel(self, transaction: Transaction) -> None:
        if transaction.state not in ("pending", "authorize", "capture"):
            raise not_modifiable()
        self.become(transaction, "cancel")

    def expire(self, transaction: Transaction) -> None:
        if transaction.state != "pending":
            raise not_modifiable()
        self.become(transaction, "expire")

    def review(self, transaction: Transaction, *, approve: bool) -> None:
        """Accept or deny a capture that the fraud check has challenged."""
        if transaction.fraud_status != "challenge" or transaction.state != "capture":
            raise not_modifiable()
        transaction.fraud_status = "accept" if approve else "deny"
        if approve:
            self.notify(transaction)
        else:
            self.become(transaction, "deny")

    def refund(
        self, transaction: Transaction, *, key: str, amount: int | None, reason: str
    ) -> dict[str, Any]:
        """Give money back; the bank confirms later with a second notification."""
        known = next((r for r in transaction.refunds if key and r["refund_key"] == key), None)
        if known is not None:
            if self.options.replay_refund_key:
                return self._refund_answer(transaction, known)
            raise CoreRefusal(406, "Duplicate refund key. The refund key has already been used.")
        # GUESS: 412 for what cannot be refunded at all, such as a virtual account.
        if transaction.state not in ("settlement", "partial_refund") or (
            not transaction.method.can_refund
        ):
            raise not_modifiable()
        left = transaction.amount - transaction.refunded
        wanted = left if amount is None else amount
        partial = wanted < transaction.amount
        if not 0 < wanted <= left or (partial and not transaction.method.can_refund_in_part):
            raise CoreRefusal(414, "Refund amount is invalid.")
        refund = self._add_refund(transaction, wanted, key=key, reason=reason)
        self.become(transaction, "refund" if wanted == left else "partial_refund")
        confirmed = self._clock.now() + _BANK_CONFIRMS_AFTER
        self._agenda.at(confirmed, lambda: self._confirm_refund(transaction, refund))
        return self._refund_answer(transaction, refund)

    def _add_refund(
        self, transaction: Transaction, amount: int, *, key: str, reason: str
    ) -> dict[str, Any]:
        number = next(self._refund_numbers)
        refund = {
            "refund_chargeback_id": number,
            "refund_chargeback_uuid": str(uuid4()),
            "refund_amount": f"{amount}.00",
            "created_at": wib(self._clock.shown(self._clock.now())),
            "reason": reason,
            "refund_key": key or f"{transaction.id}-{number}",
        }
        transaction.refunds.append(refund)
        return refund

    def _confirm_refund(self, transaction: Transaction, refund: dict[str, Any]) -> None:
        refund["bank_confirmed_at"] = wib(self._clock.shown(self._clock.now()))
        self.notify(transaction)

    def _refund_answer(self, transaction: Transaction, refund: dict[str, Any]) -> dict[str, Any]:
        document = self.document(transaction, code=200)
        del document["refunds"]
        return document | {
            "status_message": "Success, refund request is approved",
            "refund_chargeback_id": refund["refund_chargeback_id"],
            "refund_key": refund["refund_key"],
        }

    # -- Documents -----------------------------------------------------------------------------

    def document(
        self, transaction: Transaction, *, code: int, by_transaction: bool = False
    ) -> dict[str, Any]:
        """Return the transaction as status and notifications show it: strings, without nulls."""
        order_id = transaction.id if by_transaction else transaction.order_id
        document: dict[str, Any] = {
            "status_code": str(code),
            "status_message": "Success, transaction is found",
            "transaction_id": transaction.id,
            "order_id": order_id,
            "merchant_id": MERCHANT_ID,
            "gross_amount": f"{transaction.amount}.00",
            "currency": "IDR",
            "payment_type": transaction.method.payment_type,
            "transaction_status": transaction.state,
            "transaction_time": wib(self._clock.shown(transaction.time)),
            "expiry_time": wib(self._clock.shown(transaction.expires_at)),
            **transaction.extra,
        }
        if transaction.fraud_status is not None:
            document["fraud_status"] = transaction.fraud_status
        if transaction.settled_at is not None:
            document["settlement_time"] = wib(self._clock.shown(transaction.settled_at))
        if transaction.refunds:
            document["refund_amount"] = f"{transaction.refunded}.00"
            document["refunds"] = [dict(refund) for refund in transaction.refunds]
        document["signature_key"] = self.signature(order_id, str(code), document["gross_amount"])
        return document

    def status(self, transaction: Transaction) -> dict[str, Any]:
        """Return what the status call answers."""
        code = {"pending": 201, "expire": 407, "deny": 202}.get(transaction.state, 200)
        method = transaction.method
        document = self.document(transaction, code=code, by_transaction=method.by_transaction)
        if method.shouts and transaction.state == "pending":
            document["transaction_status"] = "PENDING"
        return document

    def notify(self, transaction: Transaction) -> None:
        """Send the transaction as it is now to the shop."""
        code = 201 if transaction.state in ("pending", "authorize") else 200
        if transaction.state in ("deny", "cancel", "expire"):
            code = 202
        document = self.document(transaction, code=code)
        document["status_message"] = "midtrans payment notification"
        for url in transaction.notify_urls or [self.webhook_url]:
            self._webhooks.send("midtrans", url, document)

    def signature(self, order_id: str, code: str, gross_amount: str) -> str:
        signed = f"{order_id}{code}{gross_amount}{self.server_key}"
        return hashlib.sha512(signed.encode()).hexdigest()

    def send_dashboard_test(self) -> None:
        """The dashboard's button: well signed, and its status is unknown to the API."""
        order_id = f"payment_notif_test_{MERCHANT_ID}_{uuid4()}"
        document = {
            "transaction_time": "2023-11-15 18:45:13",
            "transaction_status": "settlement",
            "transaction_id": "513f1f01-c9da-474c-9fc9-d5c64364b709",
            "status_message": "midtrans payment notification",
            "status_code": "200",
            "signature_key": self.signature(order_id, "200", "105000.00"),
            "settlement_time": "2023-11-15 22:45:13",
            "payment_type": "gopay",
            "order_id": order_id,
            "merchant_id": MERCHANT_ID,
            "gross_amount": "105000.00",
            "fraud_status": "accept",
            "currency": "IDR",
        }
        self._webhooks.send("midtrans", self.webhook_url, document)


def _amount(asked: Mapping[str, Any]) -> int:
    amount: int = asked["transaction_details"]["gross_amount"]
    return amount


_UNIT_SECONDS: Final = {"minute": 60.0, "hour": 3600.0, "day": 86400.0}


def _seconds(expiry: Mapping[str, Any]) -> float:
    seconds: float = expiry["duration"] * _UNIT_SECONDS[expiry["unit"].removesuffix("s")]
    return seconds


def _page_seconds(asked: Mapping[str, Any]) -> float:
    expiry = asked.get("page_expiry") or asked.get("expiry")
    return _seconds(expiry) if expiry else _UNIT_SECONDS["day"]


def _custom_fields(asked: Mapping[str, Any]) -> dict[str, object]:
    names = ("custom_field1", "custom_field2", "custom_field3")
    return {name: asked[name] for name in names if name in asked}
