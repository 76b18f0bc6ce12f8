"""Midtrans's HTTP: Snap (create, cancel a session) and the Core API (status, cancel, refund, …)."""

import re
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

from skincare.local.gateways.clock import Clock, iso
from skincare.local.gateways.midtrans import CoreRefusal, Midtrans, SnapRefusal, Transaction
from skincare.local.gateways.web import Answer, Refusal, Request, Routes

PREFIX: Final = "/midtrans"
_ORDER_ID: Final = re.compile(r"[A-Za-z0-9_~.-]{1,50}")
_MAX_NOTIFY_URLS: Final = 3
_IDEMPOTENCY_SECONDS: Final = 300.0
_IDEMPOTENCY_MAX: Final = 46  # characters; longer keys are ignored


class MidtransApi:
    """The calls of a merchant's server."""

    def __init__(self, midtrans: Midtrans, clock: Clock, base_url: Callable[[], str]) -> None:
        self._midtrans = midtrans
        self._clock = clock
        self._base_url = base_url
        self._answers: dict[str, tuple[float, Answer]] = {}  # by idempotency key
        self.calls: list[str] = []

    def add_to(self, routes: Routes) -> None:
        snap = f"{PREFIX}/snap/v1/transactions"
        routes.add("POST", snap, self.create)
        routes.add("POST", f"{snap}/{{token}}/cancel", self.cancel_session)
        core = f"{PREFIX}/v2/{{id}}"
        routes.add("GET", f"{core}/status", self.status)
        for action in ("cancel", "expire", "approve", "deny", "refund", "refund/online/direct"):
            view = getattr(self, action.partition("/")[0])
            routes.add("POST", f"{core}/{action}", self._once(action, view))

    # -- Snap ----------------------------------------------------------------------------------

    def create(self, request: Request) -> Answer:
        self.calls.append("create")
        self._check_snap_key(request)
        try:
            asked = request.json()
        except ValueError:
            return snap_errors(400, "request body is not valid JSON")
        wrong = what_is_wrong(asked)
        if wrong:
            return snap_errors(400, *wrong)
        with self._midtrans.lock:
            try:
                session = self._midtrans.create_session(asked, notify_urls=self._urls(request))
            except SnapRefusal as refusal:
                return snap_errors(refusal.status, *refusal.messages)
        url = f"{self._base_url()}{PREFIX}/snap/v4/redirection/{session.token}"
        return Answer.json({"token": session.token, "redirect_url": url}, 201)

    def cancel_session(self, request: Request, token: str) -> Answer:
        self.calls.append("cancel_session")
        self._check_snap_key(request)
        with self._midtrans.lock:
            try:
                at = self._midtrans.cancel_session(token)
            except SnapRefusal as refusal:
                return snap_errors(refusal.status, *refusal.messages)
        return Answer.json({"canceled_at": iso(at, 3)})

    def _check_snap_key(self, request: Request) -> None:
        if request.user != self._midtrans.server_key:
            raise Refusal(
                snap_errors(
                    401,
                    "Access denied due to unauthorized transaction, please check client or server "
                    "key",
                )
            )

    def _urls(self, request: Request) -> list[str]:
        def listed(name: str) -> list[str]:
            urls = [url.strip() for url in request.headers.get(name, "").split(",")]
            return [url for url in urls if url][:_MAX_NOTIFY_URLS]

        override, append = listed("x-override-notification"), listed("x-append-notification")
        if not override and not append:
            return []
        return [*(override or [self._midtrans.webhook_url]), *append]

    # -- Core API ------------------------------------------------------------------------------

    def status(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        self.calls.append("status")
        with self._midtrans.lock:
            try:
                self._check_core_key(request)
                return Answer.json(self._midtrans.status(self._midtrans.find(id)))
            except CoreRefusal as refusal:
                return self._refused(refusal)

    def cancel(self, request: Request, transaction: Transaction) -> Answer:
        self._midtrans.cancel(transaction)
        return self._changed(transaction, 200, "Success, transaction is canceled")

    def expire(self, request: Request, transaction: Transaction) -> Answer:
        self._midtrans.expire(transaction)
        return self._changed(transaction, 407, "Success, transaction has expired")

    def approve(self, request: Request, transaction: Transaction) -> Answer:
        self._midtrans.review(transaction, approve=True)
        return self._changed(transaction, 200, "Success, transaction is approved")

    def deny(self, request: Request, transaction: Transaction) -> Answer:
        self._midtrans.review(transaction, approve=False)
        return self._changed(transaction, 200, "Success, transaction is denied")

    def refund(self, request: Request, transaction: Transaction) -> Answer:
        try:
            asked = request.json()
        except ValueError:
            raise CoreRefusal(413, "The request cannot be processed due to malformed syntax") from (
                None
            )
        amount, key = asked.get("amount"), asked.get("refund_key", "")
        if amount is not None and (isinstance(amount, bool) or not isinstance(amount, int)):
            raise CoreRefusal(400, "amount must be an integer")
        if key and not re.fullmatch(r"[A-Za-z0-9_-]+", key):
            raise CoreRefusal(400, "refund_key has invalid characters")
        return Answer.json(
            self._midtrans.refund(
                transaction, key=key, amount=amount, reason=asked.get("reason", "")
            )
        )

    def _once(self, action: str, view: Callable[[Request, Transaction], Answer]) -> Any:
        """Answer a call of the Core API; the same idempotency key gets the same answer again.

        The key is one for all addresses, its answer is repeated whatever the body, and only what
        succeeded is kept, for five minutes.
        """

        def answer(request: Request, id: str) -> Answer:  # noqa: A002 the path's name
            self.calls.append(action)
            key = request.headers.get("idempotency-key", "")
            kept = key and len(key) <= _IDEMPOTENCY_MAX
            with self._midtrans.lock:
                until, before = self._answers.get(key, (0.0, None))
                if kept and before is not None and self._clock.now() < until:
                    return before
                try:
                    self._check_core_key(request)
                    answered = view(request, self._midtrans.find(id))
                except CoreRefusal as refusal:
                    return self._refused(refusal)
                if kept:
                    self._answers[key] = (self._clock.now() + _IDEMPOTENCY_SECONDS, answered)
                return answered

        return answer

    def _check_core_key(self, request: Request) -> None:
        if request.user != self._midtrans.server_key:
            raise CoreRefusal(
                401,
                "Transaction cannot be authorized with the current client/server key.",
            )

    def _changed(self, transaction: Transaction, code: int, message: str) -> Answer:
        document = self._midtrans.document(transaction, code=code)
        return Answer.json(document | {"status_message": message})

    def _refused(self, refusal: CoreRefusal) -> Answer:
        document = {
            "status_code": str(refusal.code),
            "status_message": refusal.message,
            "id": str(uuid4()),
        }
        hidden = self._midtrans.options.errors_as_200 and refusal.code != 401
        return Answer.json(document, 200 if hidden else refusal.code)


def snap_errors(status: int, *messages: str) -> Answer:
    return Answer.json({"error_messages": list(messages)}, status)


def what_is_wrong(asked: dict[str, Any]) -> list[str]:
    """Return what Snap says of a request that breaks its rules; nothing where it breaks none."""
    details = asked.get("transaction_details")
    if not isinstance(details, dict):
        return ["transaction_details is required"]
    wrong = []
    order_id, amount = details.get("order_id"), details.get("gross_amount")
    if not order_id:
        wrong.append("transaction_details.order_id is required")
    elif not isinstance(order_id, str) or not _ORDER_ID.fullmatch(order_id):
        wrong.append(
            "transaction_details.order_id is too long or has characters that are not allowed"
        )
    if amount is None:
        wrong.append("transaction_details.gross_amount is required")
    elif isinstance(amount, bool) or not isinstance(amount, int) or amount < 1:
        wrong.append("transaction_details.gross_amount must be a whole number of at least 1")
    items = asked.get("item_details")
    if items and not wrong:
        total = sum(item["price"] * item["quantity"] for item in items)
        if total != amount:
            wrong.append("transaction_details.gross_amount is not equal to the sum of item_details")
        if any(len(item.get("name", "")) > 50 for item in items):
            wrong.append("item_details Name too long. Max 50 characters")
    for name in ("expiry", "page_expiry"):
        expiry = asked.get(name)
        if expiry and (expiry.get("unit") or "").removesuffix("s") not in ("minute", "hour", "day"):
            wrong.append(f"{name}.unit is not valid")
    return wrong
