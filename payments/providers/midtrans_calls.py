"""What we ask Midtrans for: a Snap page, a status, a cancellation, a refund.

https://docs.midtrans.com/reference/backend-integration (Snap)
https://docs.midtrans.com/reference/get-transaction-status
https://docs.midtrans.com/reference/cancel-transaction
https://docs.midtrans.com/reference/refund-transaction
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from payments.exceptions import (
    GatewayRefused,
    GatewayUnavailable,
    NotCancellable,
    NotRefundable,
    ReferenceInUse,
)
from payments.providers.base import Page, Purchase, page_of
from payments.providers.document import told
from payments.providers.http import Answer, call

if TYPE_CHECKING:
    from payments.models import Payment

NAME: Final = "midtrans"

#: Our ways to pay → what `enabled_payments` calls them.
WAYS: Final[Mapping[str, Sequence[str]]] = {
    "qris": ("other_qris", "gopay"),
    "ewallet": ("gopay", "shopeepay", "dana", "ovo"),
    "card": ("credit_card",),
    "virtual_account": ("bank_transfer", "echannel"),
    "counter": ("cstore",),
}
_MAX_NAME: Final = 50  # characters of a product's name
#: Snap has no codes for its refusals. These are the words of the three sentences for a used id.
_IN_USE: Final = ("already been taken", "sudah digunakan", "paid and utilized")
_NOT_FOUND: Final = 404
_NOT_MODIFIABLE: Final = 412
_DUPLICATE_REFUND: Final = 406
_EXPIRED: Final = 407  # also the success of expiring


def create(payment: "Payment", purchase: Purchase) -> Page:
    """Open a Snap page. The same reference again gets a new page, and the older one is revoked, as
    long as nobody has picked a method on it.
    """
    answer = _snap("create", "/transactions", json=_asked(payment, purchase))
    if answer.is_ok:
        return page_of(NAME, answer.object.get("token"), answer.object.get("redirect_url"))
    said = _sentences(answer)
    if any(words in said for words in _IN_USE):
        raise ReferenceInUse(NAME, said)
    raise GatewayRefused(NAME, f"HTTP {answer.status}: {said}")


def _asked(payment: "Payment", purchase: Purchase) -> dict[str, Any]:
    period = {"unit": "minute", "duration": purchase.minutes}
    asked: dict[str, Any] = {
        "transaction_details": {
            "order_id": payment.reference,
            "gross_amount": payment.amount_rupiah,
        },
        "customer_details": {"email": purchase.email},
        "credit_card": {"secure": True},
        "callbacks": {"finish": purchase.return_url},
        # Without a start the time would count from the moment at which the buyer picks a method.
        "expiry": {"start_time": purchase.starts_at.strftime("%Y-%m-%d %H:%M:%S %z"), **period},
        "page_expiry": period,
        # Some methods put their own id in the place of ours; this one comes back as we gave it.
        "custom_field1": payment.reference,
    }
    lines = [
        {
            "id": line.sku,
            "name": line.name[:_MAX_NAME].replace("|", "/"),
            "price": line.price_rupiah,
            "quantity": line.quantity,
        }
        for line in purchase.lines
    ]
    if sum(line.price_rupiah * line.quantity for line in purchase.lines) == payment.amount_rupiah:
        asked["item_details"] = lines
    if purchase.way:
        asked["enabled_payments"] = list(WAYS[purchase.way])
    return asked


def status(id_: str) -> dict[str, Any] | None:
    """Return the status document of a transaction or order id; None where there is none."""
    answer = _core("GET", "status", f"/v2/{id_}/status")
    code = _code(answer)
    if code == _NOT_FOUND:
        return None
    if not 200 <= code < 300 and "transaction_status" not in answer.object:
        raise GatewayRefused(NAME, f"{code}: {_message(answer)}")
    return answer.object


def cancel_page(token: str) -> None:
    """Close a Snap page on which nobody has picked a method. Raises `NotCancellable`."""
    answer = _snap("cancel_page", f"/transactions/{token}/cancel")
    if not answer.is_ok:
        raise NotCancellable(NAME, f"HTTP {answer.status}: {_sentences(answer)}")


def cancel(id_: str) -> bool:
    """Cancel a transaction; False where there is none of this id. Raises `NotCancellable`."""
    answer = _core("POST", "cancel", f"/v2/{id_}/cancel")
    code = _code(answer)
    if code == _NOT_FOUND:
        return False
    if code == _NOT_MODIFIABLE:
        raise NotCancellable(NAME, _message(answer))
    if not 200 <= code < 300 and code != _EXPIRED:
        raise GatewayRefused(NAME, f"{code}: {_message(answer)}")
    return True


def refund(id_: str, *, key: str, amount_rupiah: int, reason: str) -> dict[str, Any] | None:
    """Ask for a refund and return Midtrans's answer; None where this key was used before."""
    answer = _core(
        "POST",
        "refund",
        f"/v2/{id_}/refund",
        json={"refund_key": key, "amount": amount_rupiah, "reason": reason[:255]},
    )
    code = _code(answer)
    if code == _DUPLICATE_REFUND:
        return None
    if code == _NOT_MODIFIABLE:
        raise NotRefundable(NAME, _message(answer))
    if not 200 <= code < 300:
        raise GatewayRefused(NAME, f"{code}: {_message(answer)}")
    if "status_code" not in answer.object:
        raise GatewayUnavailable(NAME, "the answer does not say what became of the refund")
    return answer.object


def _snap(action: str, path: str, *, json: Mapping[str, Any] | None = None) -> Answer:
    return call(
        "POST",
        f"{settings.MIDTRANS_SNAP_URL}{path}",
        provider=NAME,
        action=action,
        key=settings.MIDTRANS_SERVER_KEY,
        json=json,
    )


def _core(method: str, action: str, path: str, *, json: Mapping[str, Any] | None = None) -> Answer:
    """Call the Core API. Raises `GatewayUnavailable` also where only its body says 5xx or 429."""
    answer = call(
        method,
        f"{settings.MIDTRANS_API_URL}{path}",
        provider=NAME,
        action=action,
        key=settings.MIDTRANS_SERVER_KEY,
        json=json,
    )
    code = _code(answer)
    if code >= 500 or code == 429:
        raise GatewayUnavailable(NAME, f"status_code {code}")
    return answer


def _code(answer: Answer) -> int:
    """Return the status code: the body's, because errors may come under HTTP 200."""
    code = str(answer.object.get("status_code", answer.status))
    return int(code) if code.isdecimal() and len(code) == 3 else answer.status


def _message(answer: Answer) -> str:
    return told(answer.object.get("status_message", ""))


def _sentences(answer: Answer) -> str:
    said = answer.object.get("error_messages")
    return told("; ".join(map(str, said))) if isinstance(said, list) else ""
