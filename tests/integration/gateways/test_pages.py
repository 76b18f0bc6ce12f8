"""The payment pages, walked as a browser without scripts would."""

import re
from html import unescape
from typing import Any

import requests

from skincare.local.gateways.simulator import Simulator
from tests.integration.gateways.conftest import Call, Shop


class Visitor:
    """Opens a page and presses its buttons by their labels."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.open()

    def open(self) -> None:
        answer = requests.get(self._url, timeout=10)
        self.status, self.text = answer.status_code, answer.text

    def press(self, label: str) -> int:
        forms = re.findall(r"<form.*?</form>", self.text)
        form = next(f for f in forms if unescape(f).partition("</button>")[0].endswith(f">{label}"))
        fields: dict[str, Any] = {
            name: unescape(value)
            for name, value in re.findall(r'name="([^"]*)" value="([^"]*)"', form)
        }
        answer = requests.post(self._url, data=fields, timeout=10)
        self.text = answer.text
        return answer.status_code

    @property
    def state(self) -> str:
        found = re.search(r'id="state">(.*?)</p>', self.text)
        assert found
        return re.sub("<.*?>", "", found[1])


def snap_page(midtrans: Call, **more: Any) -> Visitor:
    asked = {
        "transaction_details": {"order_id": "order-1", "gross_amount": 150_000},
        "callbacks": {"finish": "https://shop.example/orders/1?a=b"},
        **more,
    }
    answer = midtrans("POST", "/snap/v1/transactions", json=asked)
    return Visitor(answer.json()["redirect_url"])


def invoice_page(xendit: Call) -> Visitor:
    asked = {
        "external_id": "order-1",
        "amount": 150_000,
        "success_redirect_url": "https://shop.example/orders/1",
    }
    return Visitor(xendit("POST", "/v2/invoices", json=asked).json()["invoice_url"])


def test_a_buyer_is_declined_and_pays_with_another_card(
    midtrans: Call, gateways: Simulator, shop: Shop
) -> None:
    page = snap_page(midtrans)
    assert "Rp150.000" in page.text
    page.press("Card 4911111111111113 (deny by the bank)")
    assert page.state == "Card: deny"
    gateways.deliver()
    page.press("Card 4811111111111114 (accept)")
    assert page.state == "Card: capture"
    gateways.deliver()
    assert [n["transaction_status"] for n in shop.heard] == ["deny", "capture"]


def test_the_way_back_says_what_became_of_it(midtrans: Call) -> None:
    page = snap_page(midtrans)
    page.press("QRIS")
    page.press("Pay")
    back = re.search(r'href="([^"]*)">Back', page.text)
    assert back
    assert unescape(back[1]) == (
        "https://shop.example/orders/1?a=b&order_id=order-1&status_code=200"
        "&transaction_status=settlement"
    )


def test_a_buyer_lets_it_expire_and_pays_late(midtrans: Call, gateways: Simulator) -> None:
    page = snap_page(midtrans)
    page.press("BCA virtual account")
    page.press("Expire")
    assert page.state == "BCA virtual account: expire"
    page.press("Pay late")
    assert page.state == "BCA virtual account: settlement"
    assert gateways.midtrans.charges == ["order-1"]


def test_the_bank_reverses_a_settlement(midtrans: Call) -> None:
    page = snap_page(midtrans)
    page.press("Permata virtual account")
    page.press("Pay")
    page.press("Reverse")
    assert page.state == "Permata virtual account: deny"


def test_calls_are_lost_and_sent_again_from_the_page(
    midtrans: Call, gateways: Simulator, shop: Shop
) -> None:
    page = snap_page(midtrans)
    page.press("Lose all")
    page.press("QRIS")
    page.press("Pay")
    page.press("As usual")
    gateways.deliver()
    assert shop.heard == []
    page.press("Send again")  # the oldest that the page shows
    gateways.deliver()
    assert [n["transaction_status"] for n in shop.heard] == ["pending"]


def test_an_invoice_is_declined_without_a_call_and_paid(
    xendit: Call, gateways: Simulator, shop: Shop
) -> None:
    page = invoice_page(xendit)
    page.press("Card that is declined")
    assert page.state == "PENDING"
    page.press("QRIS")
    assert page.state == "PAID"
    gateways.deliver()
    assert [n["status"] for n in shop.heard] == ["PAID"]


def test_a_session_has_a_page_too(xendit: Call) -> None:
    asked = {
        "reference_id": "order-1",
        "session_type": "PAY",
        "mode": "PAYMENT_LINK",
        "amount": 150_000,
        "currency": "IDR",
        "country": "ID",
    }
    page = Visitor(xendit("POST", "/sessions", json=asked).json()["payment_link_url"])
    page.press("Card that is declined")
    assert page.state == "ACTIVE"
    page.press("DANA")
    assert page.state == "COMPLETED"


def test_what_is_not_possible_is_said(midtrans: Call) -> None:
    page = snap_page(midtrans)
    page.press("QRIS")
    stale = Visitor(page._url)
    page.press("Pay")
    assert stale.press("Be declined") == 409
    assert "cannot modify" in stale.text


def test_nobody_can_pick_on_a_page_that_has_ended(midtrans: Call, gateways: Simulator) -> None:
    page = snap_page(midtrans, page_expiry={"unit": "minutes", "duration": 10})
    gateways.advance(601)
    page.open()
    assert page.state == "This page is expired."
    assert "QRIS" not in page.text
