"""What we ask Xendit for: an invoice, its state, its end, a refund.

Invoices and not payment sessions, though the latter are their successors: an invoice whose answer
was lost can be found by our own reference, a session cannot; and Xendit's official clients speak
invoices, so the simulator is held to something that nobody here wrote.

https://developers.xendit.co/api-reference/#invoices
https://github.com/xendit/xendit-python/blob/master/docs/InvoiceApi.md
https://docs.xendit.co/apidocs/create-refund
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from django.conf import settings

from payments.exceptions import (
    GatewayRefused,
    GatewayUnavailable,
    NotCancellable,
    NotRefundable,
)
from payments.providers.base import Page, Purchase, page_of
from payments.providers.document import any_moment, told
from payments.providers.http import Answer, call

if TYPE_CHECKING:
    from payments.models import Payment

NAME: Final = "xendit"

#: Our ways to pay → what `payment_methods` calls them.
WAYS: Final[Mapping[str, Sequence[str]]] = {
    "qris": ("QRIS",),
    "ewallet": ("OVO", "DANA", "SHOPEEPAY", "LINKAJA"),
    "card": ("CREDIT_CARD",),
    "virtual_account": ("BCA", "BNI", "BRI", "MANDIRI", "PERMATA"),
    "counter": ("ALFAMART", "INDOMARET"),
}
_MAX_URL: Final = 255
#: What `error_code` says of refunds. https://docs.xendit.co/apidocs/create-refund
_NO_REFUNDS: Final = ("REFUND_NOT_SUPPORTED", "PARTIAL_REFUND_NOT_SUPPORTED")
_NOT_NOW: Final = (
    "REFUND_IN_PROGRESS",
    "TEMPORARILY_UNAVAILABLE",
    "DUPLICATE_ERROR",
    "IDEMPOTENCY_ERROR",
)


def create(payment: "Payment", purchase: Purchase) -> Page:
    """Open an invoice. The same reference again opens another one, which can be paid as well."""
    asked: dict[str, Any] = {
        "external_id": payment.reference,
        "amount": payment.amount_rupiah,
        "currency": "IDR",
        "description": purchase.order_number,
        "invoice_duration": purchase.minutes * 60,
        "payer_email": purchase.email,
        "should_send_email": False,
        "items": [
            {"name": line.name, "quantity": line.quantity, "price": line.price_rupiah}
            for line in purchase.lines
        ],
    }
    if len(purchase.return_url) <= _MAX_URL:
        asked["success_redirect_url"] = asked["failure_redirect_url"] = purchase.return_url
    if purchase.way:
        asked["payment_methods"] = list(WAYS[purchase.way])
    answer = _call("POST", "create", "/v2/invoices", json=asked)
    _check(answer)
    if answer.object.get("external_id") != payment.reference:
        raise GatewayUnavailable(NAME, "the answer is about another invoice")
    return page_of_invoice(answer.object)


def page_of_invoice(invoice: Mapping[str, Any]) -> Page:
    """Return the payment page of an invoice document."""
    until = any_moment(invoice, "expiry_date")
    return page_of(NAME, invoice.get("id"), invoice.get("invoice_url"), until=until)


def invoices_of(reference: str) -> list[dict[str, Any]]:
    """Return all invoices with our reference, the newest first."""
    query = {"external_id": reference, "limit": "100"}
    answer = _call("GET", "list", "/v2/invoices", query=query, expects=list)
    _check(answer)
    invoices = [one for one in answer.document if isinstance(one, dict)]
    return [one for one in invoices if one.get("external_id") == reference]


def invoice(id_: str) -> dict[str, Any] | None:
    """Return the invoice; None where there is none of this id."""
    answer = _call("GET", "status", f"/v2/invoices/{quote(id_, safe='')}")
    if answer.status == 404:
        return None
    _check(answer)
    return answer.object


def payment_request(id_: str) -> dict[str, Any] | None:
    """Return a payment request of the Payments API; None where there is none of this id."""
    answer = _call("GET", "status", f"/v3/payment_requests/{quote(id_, safe='')}", v3=True)
    if answer.status == 404:
        return None
    _check(answer)
    return answer.object


def expire(id_: str) -> None:
    """End an invoice that nobody has paid. Raises `NotCancellable`."""
    answer = _call("POST", "expire", f"/invoices/{quote(id_, safe='')}/expire!")
    if answer.is_ok:
        return
    if answer.status in (400, 404):
        raise NotCancellable(NAME, _error(answer))
    _check(answer)


def refund(asked: Mapping[str, Any], *, key: str) -> dict[str, Any]:
    """Ask for a refund and return it. The same key with the same body gets the same answer.

    Raises `NotRefundable` where this way to pay has no refunds, `GatewayUnavailable` also where
    another refund has to end first, or where the key may have been taken already.
    """
    answer = _call("POST", "refund", "/refunds", json=asked, headers={"idempotency-key": key})
    if _error(answer) in _NO_REFUNDS:
        raise NotRefundable(NAME, _error(answer))
    if _error(answer) in _NOT_NOW:
        raise GatewayUnavailable(NAME, _error(answer))
    _check(answer)
    return answer.object


def dispute(id_: str) -> dict[str, Any] | None:
    """Return a dispute; None where there is none of this id, or our key may not see it.

    https://docs.xendit.co/docs/manage-disputes-via-api
    """
    answer = _call("GET", "dispute", f"/v1/disputes/{quote(id_, safe='')}")
    if answer.status in (403, 404):
        return None
    _check(answer)
    return answer.object


def refunds_of(**query: str) -> list[dict[str, Any]]:
    """Return the refunds of an invoice (`invoice_id`) or a payment request."""
    answer = _call("GET", "refunds", "/refunds", query=query)
    _check(answer)
    listed = answer.object.get("data")
    if not isinstance(listed, list):
        raise GatewayUnavailable(NAME, "the answer has no list of refunds in it")
    return [one for one in listed if isinstance(one, dict)]


def _call(
    method: str,
    action: str,
    path: str,
    *,
    json: Mapping[str, Any] | None = None,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    v3: bool = False,
    expects: type = dict,
) -> Answer:
    more = {"api-version": "2024-11-11"} if v3 else {}
    return call(
        method,
        f"{settings.XENDIT_API_URL}{path}",
        provider=NAME,
        action=action,
        key=settings.XENDIT_SECRET_KEY,
        json=json,
        query=query,
        headers={**more, **(headers or {})},
        expects=expects,
    )


def _check(answer: Answer) -> None:
    if not answer.is_ok:
        raise GatewayRefused(NAME, f"HTTP {answer.status}: {_error(answer)}")


def _error(answer: Answer) -> str:
    return told(answer.object.get("error_code", ""))
