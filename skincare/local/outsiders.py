"""Who talks to the shop over HTTP from outside: a buyer, Midtrans, Xendit, a clerk.

Each knows only the shop's address and its own secret; nothing of the shop's code is used.
"""

import hashlib
from datetime import datetime
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import requests

TIMEOUT = 10.0  # seconds
JAKARTA = ZoneInfo("Asia/Jakarta")


class Buyer:
    """Looks at products, checks out, and looks at the order."""

    def __init__(self, web_url: str) -> None:
        self._url = f"{web_url}/v1"

    def products(self) -> list[dict[str, Any]]:
        return self._get("products", limit=100)["items"]

    def available(self, sku: str) -> int:
        """Pieces that can be bought now."""
        return next(p["available"] for p in self.products() if p["sku"] == sku)

    def check_out(self, sku: str, *, quantity: int, method: str, email: str) -> requests.Response:
        return requests.post(
            f"{self._url}/checkout",
            json={
                "items": [{"sku": sku, "quantity": quantity}],
                "email": email,
                "payment_method": method,
            },
            headers={"Idempotency-Key": str(uuid4())},
            timeout=TIMEOUT,
        )

    def order(self, order_id: str) -> dict[str, Any]:
        return self._get(f"orders/{order_id}")

    def open_page(self, order_id: str) -> requests.Response:
        """Ask for the order's payment page."""
        return requests.post(
            f"{self._url}/orders/{order_id}/payments",
            json={},
            headers={"Idempotency-Key": str(uuid4())},
            timeout=2 * TIMEOUT,
        )

    def press(self, page_url: str, action: str, **values: str) -> None:
        """Press a button of a payment page."""
        form = {"action": action, **values}
        requests.post(page_url, data=form, timeout=TIMEOUT).raise_for_status()

    def _get(self, path: str, **query: Any) -> Any:
        answer = requests.get(f"{self._url}/{path}", params=query, timeout=TIMEOUT)
        answer.raise_for_status()
        return answer.json()


class GatewaysBehind:
    """What the simulated gateways have called and done, as only they can know."""

    def __init__(self, url: str) -> None:
        self._url = url

    def calls(self, order: dict[str, Any], said: str) -> list[dict[str, Any]]:
        """The calls to the shop about this order that said this state, oldest first."""
        return [call for call in self._state()["webhooks"] if _is_about(call, order, said)]

    def answers(self, order: dict[str, Any], said: str) -> list[int]:
        """How the shop answered each of them that was made."""
        return [answer for call in self.calls(order, said) for answer in call["answers"]]

    def forge(self, web_url: str, notification: dict[str, Any]) -> int:
        """Send what somebody made of a notification of Midtrans; returns the answer's status."""
        url = f"{web_url}/v1/webhooks/midtrans"
        return requests.post(url, json=notification, timeout=TIMEOUT).status_code

    def refunds(self, order: dict[str, Any]) -> int:
        """How many of the order's transactions at Midtrans were refunded."""
        return sum(
            one["order_id"].startswith(order["order_id"]) and one["transaction_status"] == "refund"
            for one in self._state()["transactions"]
        )

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = requests.get(f"{self._url}/control/state", timeout=TIMEOUT).json()
        return state


def _is_about(call: dict[str, Any], order: dict[str, Any], said: str) -> bool:
    document = call["document"]
    reference = document.get("order_id") or document.get("external_id") or ""
    word = document.get("transaction_status") or document.get("status")
    return str(reference).startswith(order["order_id"]) and word == said


class Clerk:
    """One of the staff, at the admin's pages."""

    def __init__(self, web_url: str, name: str, password: str) -> None:
        """Sign in."""
        self._url = web_url
        self._browser = requests.Session()
        self._post("/admin/login/", username=name, password=password, next="/admin/")

    def read(self, path: str) -> str:
        """The page's HTML."""
        answer = self._browser.get(f"{self._url}{path}", timeout=TIMEOUT)
        answer.raise_for_status()
        return answer.text

    def decide(self, path: str, **form: str) -> bool:
        """Send the form of a page with these values; returns whether it was taken."""
        return 'class="success"' in self._post(path, **form)

    def _post(self, path: str, **form: str) -> str:
        url = f"{self._url}{path}"
        self._browser.get(url, timeout=TIMEOUT).raise_for_status()
        token = self._browser.cookies["csrftoken"]
        answer = self._browser.post(
            url, data=form | {"csrfmiddlewaretoken": token}, timeout=TIMEOUT
        )
        answer.raise_for_status()
        return answer.text


class Midtrans:
    """Signs its notifications: https://docs.midtrans.com/docs/https-notification-webhooks."""

    def __init__(self, web_url: str, *, server_key: str) -> None:
        self._url = f"{web_url}/v1/webhooks/midtrans"
        self._server_key = server_key

    def notification(self, order: dict[str, Any], status: str, status_code: str) -> dict[str, str]:
        """What Midtrans says of a bank transfer for `order` in this transaction status."""
        gross_amount = f"{order['total_rupiah']}.00"
        signed = f"{order['order_id']}{status_code}{gross_amount}{self._server_key}"
        return {
            "transaction_time": datetime.now(JAKARTA).strftime("%Y-%m-%d %H:%M:%S"),
            "transaction_status": status,
            "transaction_id": str(uuid4()),
            "status_message": "midtrans payment notification",
            "status_code": status_code,
            "signature_key": hashlib.sha512(signed.encode()).hexdigest(),
            "payment_type": "bank_transfer",
            "order_id": order["order_id"],
            "merchant_id": "G141532850",
            "gross_amount": gross_amount,
            "fraud_status": "accept",
            "currency": "IDR",
        }

    def send(self, notification: dict[str, str]) -> int:
        """Call the shop; returns the status code of its answer."""
        return requests.post(self._url, json=notification, timeout=TIMEOUT).status_code


class Xendit:
    """Proves itself by a token: https://docs.xendit.co/docs/payments-api-webhooks."""

    def __init__(self, web_url: str, *, callback_token: str) -> None:
        self._url = f"{web_url}/v1/webhooks/xendit"
        self._token = callback_token

    def capture(self, order: dict[str, Any]) -> dict[str, Any]:
        """What Xendit says when it has taken the money for `order` from an e-wallet."""
        now = datetime.now(JAKARTA).isoformat(timespec="seconds")
        amount = order["total_rupiah"]
        return {
            "event": "payment.capture",
            "business_id": "5f27a14a9bf05c73dd040bc8",
            "created": now,
            "data": {
                "payment_id": f"py-{uuid4()}",
                "payment_request_id": f"pr-{uuid4()}",
                "reference_id": order["order_id"],
                "status": "SUCCEEDED",
                "type": "PAY",
                "country": "ID",
                "currency": "IDR",
                "request_amount": amount,
                "channel_code": "DANA",
                "captures": [
                    {
                        "capture_id": f"cap-{uuid4()}",
                        "capture_amount": amount,
                        "capture_timestamp": now,
                    }
                ],
                "created": now,
                "updated": now,
            },
        }

    def send(self, callback: dict[str, Any]) -> int:
        """Call the shop; returns the status code of its answer."""
        headers = {"x-callback-token": self._token}
        answer = requests.post(self._url, json=callback, headers=headers, timeout=TIMEOUT)
        return answer.status_code
