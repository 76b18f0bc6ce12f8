"""Buyers and the gateway: HTTP clients that call until they are answered, and remember it."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import requests

from tests.chaos.shop import PRODUCTS, SERVER_KEY, Shop

PATIENCE_SECONDS = 120
MIDTRANS_TIME = timedelta(hours=7)  # Jakarta's offset from UTC


@dataclass(frozen=True)
class Bought:
    """An order that the shop has confirmed to a buyer, and how its payment went."""

    order_id: str
    email: str
    quantities: dict[str, int]
    ending: str
    """The status in which the order has to end: paid, or pending where its attempt expired."""


class Buyers:
    """Place `orders` orders, evenly over `seconds`. Every order makes two events."""

    def __init__(self, shop: Shop, *, orders: int, seconds: float, seed: int) -> None:
        self._shop = shop
        self._orders = orders
        self._seconds = seconds
        self._seed = seed
        self._local = threading.local()
        self.repeated_webhooks = 0
        self.retries = 0

    def run(self) -> list[Bought]:
        started = time.monotonic()

        def buy(number: int) -> Bought:
            time.sleep(max(0.0, started + self._seconds * number / self._orders - time.monotonic()))
            return self._buy(random.Random(f"{self._seed}-{number}"))  # noqa: S311

        with ThreadPoolExecutor(12) as pool:
            return list(pool.map(buy, range(self._orders)))

    def _buy(self, chance: random.Random) -> Bought:
        lines = chance.sample(PRODUCTS, chance.randint(1, 3))
        quantities = {sku: chance.randint(1, 3) for sku, _ in lines}
        method = chance.choice(["sandbox", "midtrans"])
        email = f"buyer-{uuid4().hex}@example.com"
        cart = {
            "items": [{"sku": sku, "quantity": pieces} for sku, pieces in quantities.items()],
            "email": email,
            "payment_method": method,
        }
        # The key is the buyer's: a call without an answer can be repeated and makes one order.
        key = {"Idempotency-Key": str(uuid4())}
        placed = self._post("/v1/checkout", cart, HTTPStatus.CREATED, headers=key)
        if method == "sandbox":
            return Bought(placed["order_id"], email, quantities, "paid")
        settled = chance.random() < 0.8
        document = notification(placed, "settlement" if settled else "expire")
        for _ in range(chance.randint(1, 3)):
            self._post("/v1/webhooks/midtrans", document, HTTPStatus.OK)
            self.repeated_webhooks += 1
        self.repeated_webhooks -= 1
        return Bought(placed["order_id"], email, quantities, "paid" if settled else "pending")

    def _post(
        self,
        path: str,
        document: dict[str, Any],
        wanted: int,
        headers: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        """Calls until it is answered as wanted. Raises AssertionError for a refusal."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = self._try(path, document, headers)
            if answer is not None and answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                assert answer.status_code == wanted, f"{path}: {answer.status_code} {answer.text}"
                result: dict[str, Any] = answer.json()
                return result
            assert time.monotonic() < deadline, f"{path} was not answered in {PATIENCE_SECONDS} s"
            self.retries += 1
            time.sleep(0.2)

    def _try(
        self, path: str, document: dict[str, Any], headers: dict[str, str] | None
    ) -> requests.Response | None:
        session = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
        try:
            return session.post(
                self._shop.web_url + path, json=document, headers=headers, timeout=15
            )
        except requests.RequestException:
            return None


def notification(placed: dict[str, Any], status: str) -> dict[str, str]:
    """What Midtrans sends when a transaction reaches `status`, signed."""
    now = datetime.now(UTC) + MIDTRANS_TIME
    status_code = "200" if status == "settlement" else "202"
    amount = f"{placed['total_rupiah']}.00"
    signed = f"{placed['order_id']}{status_code}{amount}{SERVER_KEY}"
    return {
        "transaction_time": now.strftime("%Y-%m-%d %H:%M:%S"),
        "transaction_status": status,
        "transaction_id": str(uuid4()),
        "status_message": "midtrans payment notification",
        "status_code": status_code,
        "signature_key": hashlib.sha512(signed.encode()).hexdigest(),
        "payment_type": "qris",
        "order_id": placed["order_id"],
        "merchant_id": "G000000000",
        "gross_amount": amount,
        "fraud_status": "accept",
        "currency": "IDR",
    }
