"""The simulators' calls to the shop: lost, doubled, delayed, reordered, and made again."""

from typing import Any

import pytest
import requests

from skincare.local.gateways.simulator import Simulator
from tests.integration.gateways.conftest import CALLBACK_TOKEN, Call, Shop


def trouble(gateways: Simulator, gateway: str = "xendit", **what: Any) -> None:
    answer = requests.post(
        f"{gateways.url}/control/webhooks", json={"gateway": gateway, **what}, timeout=10
    )
    assert answer.ok


def tell(gateways: Simulator, *names: str, gateway: str = "xendit") -> None:
    for name in names:
        gateways.webhooks.send(gateway, gateways.xendit.webhook_url, {"name": name})
    gateways.deliver()


def heard(shop: Shop) -> list[str]:
    return [document["name"] for document in shop.heard]


def test_the_next_call_is_lost(gateways: Simulator, shop: Shop) -> None:
    trouble(gateways, lose=1)
    tell(gateways, "a", "b")
    assert heard(shop) == ["b"]


def test_all_calls_are_lost_until_further_notice(gateways: Simulator, shop: Shop) -> None:
    trouble(gateways, lose=-1)
    tell(gateways, "a", "b", "c")
    trouble(gateways)
    tell(gateways, "d")
    assert heard(shop) == ["d"]


def test_a_call_is_doubled(gateways: Simulator, shop: Shop) -> None:
    trouble(gateways, double=1)
    tell(gateways, "a")
    tell(gateways, "b")
    assert heard(shop) == ["a", "a", "b"]


def test_a_call_is_delayed(gateways: Simulator, shop: Shop) -> None:
    trouble(gateways, delay=90)
    tell(gateways, "a")
    assert heard(shop) == []
    gateways.advance(91)
    assert heard(shop) == ["a"]


def test_calls_are_held_back_and_released_in_reverse(gateways: Simulator, shop: Shop) -> None:
    trouble(gateways, hold=True)
    tell(gateways, "a", "b", "c")
    assert heard(shop) == []
    trouble(gateways, release="reverse")
    assert heard(shop) == ["c", "b", "a"]
    tell(gateways, "d")
    assert heard(shop)[3:] == ["d"]


def test_trouble_with_one_gateway_is_not_the_others(gateways: Simulator, shop: Shop) -> None:
    trouble(gateways, gateway="midtrans", lose=-1)
    tell(gateways, "a")
    assert heard(shop) == ["a"]


@pytest.mark.parametrize(
    ("gateway", "answers", "calls"),
    [
        ("midtrans", [503, 503, 200], 3),
        ("midtrans", [500] * 9, 2),
        ("midtrans", [404] * 9, 3),
        ("midtrans", [503] * 9, 5),
        ("midtrans", [403] * 9, 6),
        ("midtrans", [302] * 9, 1),
        ("midtrans", [307, 308, 200], 3),  # followed at once, with the body
        ("xendit", [400] * 9, 7),
    ],
)
def test_calls_are_made_again_until_the_table_ends(
    gateway: str, answers: list[int], calls: int, gateways: Simulator, shop: Shop
) -> None:
    shop.answers = answers
    tell(gateways, "a", gateway=gateway)
    gateways.advance(48 * 3600)
    assert heard(shop) == ["a"] * calls


def test_a_shop_that_is_away_is_called_again(gateways: Simulator, shop: Shop) -> None:
    gateways.webhooks.send("midtrans", "http://127.0.0.1:9/", {"name": "a"})
    gateways.deliver()
    call = gateways.webhooks.all[0]
    assert call.answers == [None]
    call.url = shop.url
    gateways.advance(121)
    assert heard(shop) == ["a"]


def test_a_call_can_be_sent_again_by_hand(gateways: Simulator, shop: Shop, xendit: Call) -> None:
    tell(gateways, "a")
    gateways.webhooks.resend(1)
    gateways.deliver()
    assert heard(shop) == ["a", "a"]


def test_xendit_proves_itself_by_a_token(gateways: Simulator, shop: Shop) -> None:
    gateways.xendit.send({"name": "a"})
    gateways.xendit.send({"name": "b"}, token="guessed")
    gateways.deliver()
    tokens = {
        d["name"]: h["x-callback-token"] for d, h in zip(shop.heard, shop.headers, strict=True)
    }
    assert tokens == {"a": CALLBACK_TOKEN, "b": "guessed"}
