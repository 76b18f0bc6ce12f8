"""Xendit's HTTP: invoices, payment sessions, payment requests, refunds."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from skincare.local.gateways.clock import Clock
from skincare.local.gateways.web import Answer, Request, Routes
from skincare.local.gateways.xendit import ApiRefusal, Invoice, Session, Xendit

PREFIX: Final = "/xendit"
_REASONS: Final = ("FRAUDULENT", "DUPLICATE", "REQUESTED_BY_CUSTOMER", "CANCELLATION", "OTHERS")
_MIN_SESSION_SECONDS: Final = 600.0

View = Callable[..., Answer]


class XenditApi:
    """The calls of a merchant's server."""

    def __init__(self, xendit: Xendit, clock: Clock, base_url: Callable[[], str]) -> None:
        self._xendit = xendit
        self._clock = clock
        self._base_url = base_url
        self._recent: dict[str, list[float]] = {}  # times of the last minute's calls, by address
        self._refund_keys: dict[str, tuple[dict[str, Any], Answer]] = {}
        self.calls: list[str] = []

    def add_to(self, routes: Routes) -> None:
        for method, path, view in (
            ("POST", "/v2/invoices", self.create_invoice),
            ("GET", "/v2/invoices", self.list_invoices),
            ("GET", "/v2/invoices/{id}", self.get_invoice),
            ("POST", "/invoices/{id}/expire!", self.expire_invoice),
            ("POST", "/sessions", self.create_session),
            ("GET", "/sessions/{id}", self.get_session),
            ("POST", "/sessions/{id}/cancel", self.cancel_session),
            ("GET", "/v3/payment_requests/{id}", self.get_payment_request),
            ("POST", "/refunds", self.create_refund),
            ("GET", "/refunds", self.list_refunds),
            ("GET", "/refunds/{id}", self.get_refund),
            ("POST", "/refunds/{id}/cancel", self.cancel_refund),
            ("GET", "/v1/disputes/{id}", self.get_dispute),
        ):
            routes.add(method, PREFIX + path, self._checked(f"{method} {path}", view))

    def _checked(self, name: str, view: View) -> View:
        """Answer within the rate limit, to our own key, and refusals in the API's shape."""

        def answer(request: Request, **values: str) -> Answer:
            with self._xendit.lock:
                self.calls.append(name)
                limits = self._rate_limit(name)
                try:
                    if int(limits["Rate-Limit-Remaining"]) < 0:
                        raise ApiRefusal(429, "RATE_LIMIT_EXCEEDED", "Too many requests")
                    if request.user != self._xendit.secret_key:
                        raise ApiRefusal(401, "INVALID_API_KEY", "API key is not authorized")
                    given = view(request, **values)
                except ApiRefusal as refusal:
                    document = {"error_code": refusal.code, "message": refusal.message}
                    given = Answer.json(document, refusal.status)
            return Answer(given.status, given.body, {**given.headers, **limits})

        return answer

    def _rate_limit(self, name: str) -> dict[str, str]:
        now, limit = self._clock.now(), self._xendit.options.rate_per_minute
        recent = [at for at in self._recent.get(name, []) if at > now - 60]
        if len(recent) <= limit:
            recent.append(now)
        self._recent[name] = recent
        return {
            "Rate-Limit-Limit": str(limit),
            "Rate-Limit-Remaining": str(limit - len(recent)),
            "Rate-Limit-Reset": str(round(recent[0] + 60 - now, 1)),
        }

    # -- Invoices ------------------------------------------------------------------------------

    def create_invoice(self, request: Request) -> Answer:
        asked = document_of(request)
        for name, kind in (("external_id", str), ("amount", (int, float))):
            if not isinstance(asked.get(name), kind) or isinstance(asked.get(name), bool):
                raise invalid(f"{name} is required")
        if not 1 <= asked.get("invoice_duration", 86400) <= 31_536_000:
            raise invalid("invoice_duration must be 1 to 31536000 seconds")
        if asked.get("currency", "IDR") != "IDR":
            raise ApiRefusal(400, "UNSUPPORTED_CURRENCY")
        for name in ("success_redirect_url", "failure_redirect_url"):
            if len(asked.get(name, "")) > 255:
                raise invalid(f"{name} must be at most 255 characters")
        asked["amount"] = int(asked["amount"])  # decimals of rupiah are cut
        return self._invoice(self._xendit.create_invoice(asked))

    def get_invoice(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        return self._invoice(self._xendit.find_invoice(id))

    def list_invoices(self, request: Request) -> Answer:
        query = request.query
        found = [
            invoice
            for invoice in sorted(
                self._xendit.invoices.values(), key=lambda one: one.created, reverse=True
            )
            if query.get("external_id") in (None, invoice.asked["external_id"])
        ]
        limit = min(max(int(query.get("limit", 10)), 1), 100)
        return Answer.json([self._document(invoice) for invoice in found[:limit]])

    def expire_invoice(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        invoice = self._xendit.find_invoice(id)
        self._xendit.expire_invoice(invoice)
        return self._invoice(invoice)

    def _invoice(self, invoice: Invoice) -> Answer:
        return Answer.json(self._document(invoice))

    def _document(self, invoice: Invoice) -> dict[str, Any]:
        return self._xendit.invoice_document(
            invoice, f"{self._base_url()}{PREFIX}/web/invoices/{invoice.id}"
        )

    # -- Payment sessions ----------------------------------------------------------------------

    def create_session(self, request: Request) -> Answer:
        asked = document_of(request)
        for name in ("reference_id", "session_type", "mode", "amount", "currency", "country"):
            if not asked.get(name):
                raise invalid(f"{name} is required")
        if not 1 <= len(str(asked["reference_id"])) <= 64:
            raise invalid("reference_id must be 1 to 64 characters")
        for name in ("success_return_url", "cancel_return_url"):
            if not asked.get(name, "https://").startswith("https://"):
                raise ApiRefusal(400, "INVALID_URL", f"{name} must be HTTPS")
        expires_at = None
        if asked.get("expires_at"):
            expires_at = datetime.fromisoformat(asked["expires_at"]).timestamp()
            if expires_at < self._clock.now() + _MIN_SESSION_SECONDS:
                raise ApiRefusal(400, "INVALID_EXPIRY_DATE", "must be 10 minutes ahead")
        return self._session(self._xendit.create_session(asked, expires_at=expires_at), 201)

    def get_session(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        return self._session(self._xendit.find_session(id))

    def cancel_session(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        session = self._xendit.find_session(id)
        self._xendit.cancel_session(session)
        return self._session(session)

    def _session(self, session: Session, status: int = 200) -> Answer:
        url = f"{self._base_url()}{PREFIX}/web/sessions/{session.id}"
        return Answer.json(self._xendit.session_document(session, url), status)

    def get_payment_request(
        self,
        request: Request,
        id: str,  # noqa: A002 the path's name
    ) -> Answer:
        for session in self._xendit.sessions.values():
            for payment in session.payments:
                if payment.request_id == id:
                    reference = session.asked["reference_id"]
                    document = self._xendit.payment_document(payment, reference)
                    document["latest_payment_id"] = document.pop("payment_id")
                    return Answer.json(document)
        raise ApiRefusal(404, "DATA_NOT_FOUND")

    # -- Refunds -------------------------------------------------------------------------------

    def create_refund(self, request: Request) -> Answer:
        """GUESS: an idempotency key is kept forever."""
        asked = document_of(request)
        key = request.headers.get("idempotency-key", "")
        if key in self._refund_keys:
            before, given = self._refund_keys[key]
            if before != asked:
                raise ApiRefusal(409, "IDEMPOTENCY_ERROR")
            return given
        if asked.get("reason") not in _REASONS:
            raise invalid("reason is required")
        refund = self._xendit.refund(asked)
        given = Answer.json(self._xendit.refund_document(refund))
        if key:
            self._refund_keys[key] = (asked, given)
        return given

    def get_dispute(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        if id not in self._xendit.disputes:
            raise ApiRefusal(404, "DATA_NOT_FOUND", "dispute not found")
        return Answer.json(self._xendit.disputes[id])

    def list_refunds(self, request: Request) -> Answer:
        names = ("invoice_id", "payment_request_id")
        wanted = {name: request.query[name] for name in names if name in request.query}
        found = [self._xendit.refund_document(r) for r in self._xendit.refunds.values()]
        return Answer.json(
            {
                "data": [r for r in found if all(r[k] == v for k, v in wanted.items())],
                "has_more": False,
            }
        )

    def get_refund(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        if id not in self._xendit.refunds:
            raise ApiRefusal(404, "DATA_NOT_FOUND")
        return Answer.json(self._xendit.refund_document(self._xendit.refunds[id]))

    def cancel_refund(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        if id not in self._xendit.refunds:
            raise ApiRefusal(404, "DATA_NOT_FOUND")
        refund = self._xendit.refunds[id]
        self._xendit.cancel_refund(refund)
        return Answer.json(self._xendit.refund_document(refund))


def document_of(request: Request) -> dict[str, Any]:
    try:
        return request.json()
    except ValueError:
        raise invalid("the body is not a JSON object") from None


def invalid(message: str) -> ApiRefusal:
    return ApiRefusal(400, "API_VALIDATION_ERROR", message)
