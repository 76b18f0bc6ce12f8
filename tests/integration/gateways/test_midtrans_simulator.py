"""The Midtrans simulator does what Midtrans's documentation says, and is not kinder."""

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import requests

from skincare.local.gateways.simulator import Simulator
from tests.integration.gateways.conftest import SERVER_KEY, Call, Shop

Act = Callable[..., int]

GOOD, DENIED, FRAUD, CHALLENGED = (
    "4811111111111114",
    "4911111111111113",
    "4611111111111116",
    "4511111111111117",
)


def asked(order_id: str = "order-1", amount: int = 150_000, **more: Any) -> dict[str, Any]:
    return {"transaction_details": {"order_id": order_id, "gross_amount": amount}, **more}


@pytest.fixture
def create(midtrans: Call) -> Callable[..., requests.Response]:
    def post(*args: Any, headers: dict[str, str] | None = None, **more: Any) -> requests.Response:
        document = asked(*args, **more)
        return midtrans("POST", "/snap/v1/transactions", json=document, headers=headers)

    return post


Create = Callable[..., requests.Response]


def test_a_page_is_opened_for_an_order(create: Create) -> None:
    # when
    answer = create()
    # then
    assert answer.status_code == 201
    assert len(answer.json()["token"]) == 36
    assert answer.json()["redirect_url"].endswith(answer.json()["token"])
    assert requests.get(answer.json()["redirect_url"], timeout=10).ok


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({}, "transaction_details is required"),
        (asked("x" * 51), "too long"),
        (asked("order 1"), "not allowed"),
        (asked(amount=0), "at least 1"),
        ({"transaction_details": {"order_id": "a", "gross_amount": 10.5}}, "whole number"),
        (asked(item_details=[{"price": 1, "quantity": 2, "name": "x"}]), "sum of item_details"),
    ],
)
def test_a_request_that_breaks_a_rule_is_refused_without_a_code(
    document: dict[str, Any], text: str, midtrans: Call
) -> None:
    answer = midtrans("POST", "/snap/v1/transactions", json=document)
    assert answer.status_code == 400
    assert list(answer.json()) == ["error_messages"]
    assert text in answer.json()["error_messages"][0]


def test_a_wrong_key_is_refused_by_both_apis(midtrans: Call) -> None:
    snap = midtrans("POST", "/snap/v1/transactions", key="other", json=asked())
    core = midtrans("GET", "/v2/order-1/status", key="other")
    assert (snap.status_code, core.status_code) == (401, 401)
    assert "error_messages" in snap.json()
    assert core.json()["status_code"] == "401"


def test_the_status_is_unknown_until_the_buyer_picks_a_method(
    create: Create, midtrans: Call, act: Act
) -> None:
    create()
    before = midtrans("GET", "/v2/order-1/status")
    act("midtrans", "order-1", "pick", method="bca_va")
    after = midtrans("GET", "/v2/order-1/status")
    assert (before.status_code, before.json()["status_code"]) == (404, "404")
    assert (after.status_code, after.json()["status_code"]) == (200, "201")
    assert after.json()["transaction_status"] == "pending"


def test_errors_can_come_under_http_200(gateways: Simulator, midtrans: Call) -> None:
    gateways.midtrans.options.errors_as_200 = True
    answer = midtrans("GET", "/v2/order-1/status")
    assert (answer.status_code, answer.json()["status_code"]) == (200, "404")


def test_a_second_page_revokes_the_first_as_long_as_nobody_used_it(
    create: Create, act: Act
) -> None:
    first, second = create().json(), create().json()
    assert first["token"] != second["token"]
    assert act("midtrans", first["token"], "pick", method="qris") == 409
    assert act("midtrans", second["token"], "pick", method="qris") == 200


@pytest.mark.parametrize("text", [0, 1, 2])
def test_an_order_id_in_use_is_refused_in_one_of_three_sentences(
    text: int, gateways: Simulator, create: Create, act: Act
) -> None:
    gateways.midtrans.options.duplicate_text = text
    create()
    act("midtrans", "order-1", "pick", method="bca_va")
    answer = create()
    assert answer.status_code == 400
    assert "order_id" in answer.json()["error_messages"][0]


def test_an_order_id_can_be_used_again_after_its_transaction_was_cancelled(
    create: Create, midtrans: Call, act: Act
) -> None:
    create()
    act("midtrans", "order-1", "pick", method="bca_va")
    assert midtrans("POST", "/v2/order-1/cancel").json()["transaction_status"] == "cancel"
    assert create().status_code == 201


def test_a_denied_card_can_be_followed_by_another_under_the_same_order_id(
    create: Create, act: Act, shop: Shop, gateways: Simulator
) -> None:
    create()
    act("midtrans", "order-1", "pick", method="credit_card", card=DENIED)
    act("midtrans", "order-1", "pick", method="credit_card", card=GOOD)
    heard = [(n["transaction_status"], n["status_code"]) for n in shop.heard]
    assert heard == [("deny", "202"), ("capture", "200")]
    assert len({n["transaction_id"] for n in shop.heard}) == 2
    assert gateways.midtrans.charges == ["order-1"]


def test_the_fraud_checks_verdict_is_told(create: Create, act: Act, shop: Shop) -> None:
    create("a"), create("b")
    act("midtrans", "a", "pick", method="credit_card", card=FRAUD)
    act("midtrans", "b", "pick", method="credit_card", card=CHALLENGED)
    act("midtrans", "b", "approve")
    heard = [(n["transaction_status"], n["fraud_status"]) for n in shop.heard]
    assert heard == [("deny", "deny"), ("capture", "challenge"), ("capture", "accept")]


def test_notifications_are_signed_over_the_amount_as_it_is_written(
    create: Create, act: Act, shop: Shop
) -> None:
    create()
    act("midtrans", "order-1", "pick", method="qris")
    act("midtrans", "order-1", "pay")
    for told in shop.heard:
        signed = told["order_id"] + told["status_code"] + told["gross_amount"] + SERVER_KEY
        assert told["signature_key"] == hashlib.sha512(signed.encode()).hexdigest()
    assert [n["status_code"] for n in shop.heard] == ["201", "200"]
    assert shop.heard[-1]["gross_amount"] == "150000.00"


def test_times_are_jakartas_without_saying_so_and_nothing_is_null(
    create: Create, act: Act, shop: Shop, gateways: Simulator
) -> None:
    create()
    act("midtrans", "order-1", "pick", method="indomaret")
    told = shop.heard[0]
    at = datetime.strptime(told["transaction_time"], "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007
    wib = gateways.clock.utc().replace(tzinfo=None) + timedelta(hours=7)
    assert abs(wib - at) < timedelta(seconds=30)
    assert None not in told.values()
    assert "fraud_status" not in told  # Indomaret's have none
    assert "settlement_time" not in told


@pytest.mark.parametrize(
    ("method", "minutes"), [("qris", 15), ("gopay", 15), ("bca_va", 1440), ("indomaret", 1440)]
)
def test_what_nobody_pays_expires_in_its_methods_time(
    method: str, minutes: int, create: Create, act: Act, shop: Shop, gateways: Simulator
) -> None:
    create()
    act("midtrans", "order-1", "pick", method=method)
    gateways.advance(minutes * 60 - 5)
    assert [n["transaction_status"] for n in shop.heard] == ["pending"]
    gateways.advance(10)
    assert [n["transaction_status"] for n in shop.heard] == ["pending", "expire"]
    assert shop.heard[-1]["status_code"] == "202"


def test_the_merchants_expiry_counts_from_the_pick(
    create: Create, act: Act, shop: Shop, gateways: Simulator
) -> None:
    create(expiry={"unit": "minutes", "duration": 30}, page_expiry={"unit": "hour", "duration": 1})
    gateways.advance(45 * 60)
    act("midtrans", "order-1", "pick", method="bca_va")
    gateways.advance(29 * 60)
    assert act("midtrans", "order-1", "pay") == 200


def test_a_page_that_expires_is_silent(
    create: Create, act: Act, shop: Shop, gateways: Simulator, midtrans: Call
) -> None:
    create(page_expiry={"unit": "minutes", "duration": 20})
    gateways.advance(21 * 60)
    assert act("midtrans", "order-1", "pick", method="qris") == 409
    assert shop.heard == []
    assert midtrans("GET", "/v2/order-1/status").status_code == 404


def test_expiring_by_hand_answers_407_and_notifies_202(
    create: Create, act: Act, shop: Shop, midtrans: Call, gateways: Simulator
) -> None:
    create()
    act("midtrans", "order-1", "pick", method="bca_va")
    answer = midtrans("POST", "/v2/order-1/expire")
    gateways.deliver()
    assert (answer.status_code, answer.json()["status_code"]) == (200, "407")
    assert shop.heard[-1]["status_code"] == "202"
    assert midtrans("GET", "/v2/order-1/status").json()["status_code"] == "407"


@pytest.mark.parametrize(
    ("steps", "refused"),
    [
        (["qris", "pay"], ["cancel", "expire", "approve"]),
        (["card"], ["expire", "approve", "refund"]),
        (["qris"], ["approve", "refund"]),
        (["bca_va", "pay"], ["refund"]),
    ],
)
def test_what_a_state_does_not_allow_is_412(
    steps: list[str], refused: list[str], create: Create, act: Act, midtrans: Call
) -> None:
    create()
    if steps[0] == "card":
        act("midtrans", "order-1", "pick", method="credit_card", card=GOOD)
    else:
        act("midtrans", "order-1", "pick", method=steps[0])
    for step in steps[1:]:
        act("midtrans", "order-1", step)
    answers = [midtrans("POST", f"/v2/order-1/{action}", json={}) for action in refused]
    assert [a.json()["status_code"] for a in answers] == ["412"] * len(refused)


def test_a_capture_can_be_cancelled_and_otherwise_settles_the_next_day(
    create: Create, act: Act, midtrans: Call, gateways: Simulator
) -> None:
    create("a"), create("b")
    for order in "ab":
        act("midtrans", order, "pick", method="credit_card", card=GOOD)
    assert midtrans("POST", "/v2/a/cancel").json()["transaction_status"] == "cancel"
    gateways.advance(25 * 3600)
    statuses = [midtrans("GET", f"/v2/{o}/status").json()["transaction_status"] for o in "ab"]
    assert statuses == ["cancel", "settlement"]


def test_a_settlement_can_be_reversed_and_charged_back(
    create: Create, act: Act, shop: Shop
) -> None:
    create("a"), create("b")
    act("midtrans", "a", "pick", method="permata_va")
    act("midtrans", "b", "pick", method="credit_card", card=GOOD)
    for order, action in (
        ("a", "pay"),
        ("a", "reverse"),
        ("b", "settle"),
        ("b", "charge back half"),
    ):
        assert act("midtrans", order, action) == 200
    heard = [n["transaction_status"] for n in shop.heard if n["transaction_status"] != "pending"]
    assert heard == ["capture", "settlement", "deny", "settlement", "partial_chargeback"]


def test_money_can_come_in_after_the_expiry(
    create: Create, act: Act, shop: Shop, gateways: Simulator
) -> None:
    create()
    act("midtrans", "order-1", "pick", method="qris")
    gateways.advance(16 * 60)
    assert act("midtrans", "order-1", "pay late") == 200
    assert [n["transaction_status"] for n in shop.heard] == ["pending", "expire", "settlement"]


@pytest.mark.parametrize("method", ["dana", "danamon_va"])
def test_some_methods_are_found_by_the_transaction_only_and_answer_with_its_id(
    method: str, create: Create, act: Act, midtrans: Call, shop: Shop
) -> None:
    create()
    act("midtrans", "order-1", "pick", method=method)
    transaction_id = shop.heard[0]["transaction_id"]
    assert shop.heard[0]["order_id"] == "order-1"
    assert midtrans("GET", "/v2/order-1/status").status_code == 404
    status = midtrans("GET", f"/v2/{transaction_id}/status").json()
    assert status["order_id"] == transaction_id
    assert status["transaction_status"] == ("PENDING" if method == "dana" else "pending")


def test_a_refund_is_told_twice_with_all_refunds_so_far(
    create: Create, act: Act, midtrans: Call, shop: Shop, gateways: Simulator
) -> None:
    # given
    create()
    act("midtrans", "order-1", "pick", method="qris")
    act("midtrans", "order-1", "pay")
    # when
    for key, amount in (("first", 50_000), ("second", 100_000)):
        answer = midtrans(
            "POST",
            "/v2/order-1/refund",
            json={"refund_key": key, "amount": amount, "reason": "returned"},
        ).json()
        assert (answer["status_code"], answer["refund_key"]) == ("200", key)
        gateways.advance(61)
    # then
    told = [n for n in shop.heard if "refunds" in n]
    assert [n["transaction_status"] for n in told] == ["partial_refund"] * 2 + ["refund"] * 2
    assert [n["refund_amount"] for n in told] == ["50000.00"] * 2 + ["150000.00"] * 2
    confirmed = [["bank_confirmed_at" in r for r in n["refunds"]] for n in told]
    assert confirmed == [[False], [True], [True, False], [True, True]]


def test_a_refund_key_is_taken_once(create: Create, act: Act, midtrans: Call) -> None:
    create()
    act("midtrans", "order-1", "pick", method="qris")
    act("midtrans", "order-1", "pay")
    refund = {"refund_key": "k", "amount": 1000, "reason": "r"}
    codes = [
        midtrans("POST", "/v2/order-1/refund", json=refund).json()["status_code"] for _ in range(2)
    ]
    too_much = midtrans("POST", "/v2/order-1/refund", json={"refund_key": "l", "amount": 150_000})
    assert codes == ["200", "406"]
    assert too_much.json()["status_code"] == "414"


def test_shopeepay_refunds_in_full_only(create: Create, act: Act, midtrans: Call) -> None:
    create()
    act("midtrans", "order-1", "pick", method="shopeepay")
    act("midtrans", "order-1", "pay")
    part = midtrans("POST", "/v2/order-1/refund", json={"refund_key": "k", "amount": 1})
    whole = midtrans("POST", "/v2/order-1/refund", json={"refund_key": "l"})
    assert [a.json()["status_code"] for a in (part, whole)] == ["414", "200"]


def test_an_idempotency_key_gets_the_same_answer_for_five_minutes_whatever_the_body(
    create: Create, act: Act, midtrans: Call, gateways: Simulator
) -> None:
    create()
    act("midtrans", "order-1", "pick", method="qris")
    act("midtrans", "order-1", "pay")

    def refund(key: str, amount: int) -> str:
        answer = midtrans(
            "POST",
            "/v2/order-1/refund",
            json={"refund_key": key, "amount": amount},
            headers={"Idempotency-Key": "one"},
        )
        refunded: str = answer.json()["refund_amount"]
        return refunded

    assert [refund("a", 1000), refund("b", 2000)] == ["1000.00", "1000.00"]
    gateways.advance(301)
    assert refund("c", 3000) == "4000.00"


def test_a_snap_session_can_be_cancelled_until_somebody_uses_it(
    create: Create, act: Act, midtrans: Call, shop: Shop
) -> None:
    tokens = [create(order).json()["token"] for order in ("a", "b")]
    act("midtrans", "b", "pick", method="qris")
    path = "/snap/v1/transactions/{}/cancel"
    cancelled = midtrans("POST", path.format(tokens[0]))
    again, in_progress, unknown = (
        midtrans("POST", path.format(token)) for token in (*tokens, uuid4())
    )
    assert cancelled.json()["canceled_at"].endswith("Z")
    assert [r.json()["error_messages"] for r in (again, in_progress, unknown)] == [
        ["token already canceled"],
        ["transaction in progress"],
        ["token not found"],
    ]
    assert act("midtrans", tokens[0], "pick", method="qris") == 409
    assert [n["order_id"] for n in shop.heard] == ["b"]  # nothing is told of the cancellation


def test_notifications_go_where_the_request_wants_them(
    create: Create, act: Act, shop: Shop, gateways: Simulator
) -> None:
    gateways.midtrans.webhook_url = ""
    create(headers={"X-Override-Notification": f"{shop.url}a, {shop.url}b"})
    act("midtrans", "order-1", "pick", method="qris")
    assert len(shop.heard) == 2


def test_the_dashboards_test_is_well_signed_and_unknown(
    gateways: Simulator, shop: Shop, midtrans: Call
) -> None:
    requests.post(f"{gateways.url}/control/send", json={"gateway": "midtrans"}, timeout=10)
    gateways.deliver()
    told = shop.heard[0]
    assert told["order_id"].startswith("payment_notif_test_")
    status = midtrans("GET", f"/v2/{told['transaction_id']}/status")
    assert status.status_code == 404
