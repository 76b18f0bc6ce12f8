"""The Xendit simulator does what Xendit's documentation says, and is not kinder."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import requests

from skincare.local.gateways.clock import iso
from skincare.local.gateways.simulator import Simulator
from skincare.local.gateways.xendit_documents import OLDER_SHAPES
from tests.integration.gateways.conftest import Call, Shop

Act = Callable[..., int]


@pytest.fixture
def invoice(xendit: Call) -> Callable[..., dict[str, Any]]:
    def create(external_id: str = "order-1", **more: Any) -> dict[str, Any]:
        asked = {"external_id": external_id, "amount": 150_000, **more}
        answer = xendit("POST", "/v2/invoices", json=asked)
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document

    return create


@pytest.fixture
def session(xendit: Call) -> Callable[..., requests.Response]:
    def create(reference_id: str = "order-1", **more: Any) -> requests.Response:
        asked = {
            "reference_id": reference_id,
            "session_type": "PAY",
            "mode": "PAYMENT_LINK",
            "amount": 150_000,
            "currency": "IDR",
            "country": "ID",
            **more,
        }
        return xendit("POST", "/sessions", json=asked)

    return create


Invoice = Callable[..., dict[str, Any]]
Session = Callable[..., requests.Response]


def test_an_external_id_can_be_used_twice_and_both_can_be_paid(
    invoice: Invoice, act: Act, xendit: Call, gateways: Simulator
) -> None:
    first, second = invoice(), invoice()
    assert first["id"] != second["id"]
    listed = xendit("GET", "/v2/invoices", params={"external_id": "order-1"}).json()
    assert {one["id"] for one in listed} == {first["id"], second["id"]}
    for one in (first, second):
        assert act("xendit", one["id"], "pay") == 200
    assert gateways.xendit.charges == ["order-1", "order-1"]


def test_an_invoice_is_expired_at_an_address_of_its_own(
    invoice: Invoice, xendit: Call, shop: Shop, gateways: Simulator
) -> None:
    made = invoice()
    assert xendit("POST", f"/v2/invoices/{made['id']}/expire!").status_code == 404
    answer = xendit("POST", f"/invoices/{made['id']}/expire!")
    gateways.deliver()
    assert (answer.status_code, answer.json()["status"]) == (200, "EXPIRED")
    assert [n["status"] for n in shop.heard] == ["EXPIRED"]
    assert "paid_amount" not in shop.heard[0]


def test_a_paid_invoice_cannot_be_expired(invoice: Invoice, xendit: Call, act: Act) -> None:
    made = invoice()
    act("xendit", made["id"], "pay")
    answer = xendit("POST", f"/invoices/{made['id']}/expire!")
    assert (answer.status_code, answer.json()["error_code"]) == (404, "INVOICE_NOT_FOUND_ERROR")


def test_paid_becomes_settled_without_another_call(
    invoice: Invoice, xendit: Call, act: Act, shop: Shop, gateways: Simulator
) -> None:
    made = invoice()
    act("xendit", made["id"], "pay", channel="BCA")
    paid = xendit("GET", f"/v2/invoices/{made['id']}").json()
    gateways.advance(25 * 3600)
    settled = xendit("GET", f"/v2/invoices/{made['id']}").json()
    assert (paid["status"], settled["status"]) == ("PAID", "SETTLED")
    assert [n["status"] for n in shop.heard] == ["PAID"]
    assert shop.heard[0]["bank_code"] == "BCA"
    assert shop.heard[0]["paid_amount"] == 150_000


@pytest.mark.parametrize("named", [True, False])
def test_the_currency_of_a_callback_can_be_absent(
    named: bool, invoice: Invoice, act: Act, shop: Shop, gateways: Simulator
) -> None:
    gateways.xendit.options.invoice_currency = named
    act("xendit", invoice()["id"], "pay")
    assert ("currency" in shop.heard[0]) is named


def test_an_invoice_expires_in_its_time_and_can_be_paid_late(
    invoice: Invoice, act: Act, shop: Shop, gateways: Simulator
) -> None:
    made = invoice(invoice_duration=900)
    gateways.advance(901)
    assert act("xendit", made["id"], "pay") == 409
    assert act("xendit", made["id"], "pay late") == 200
    assert [n["status"] for n in shop.heard] == ["EXPIRED", "PAID"]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"amount": 1}, "API_VALIDATION_ERROR"),
        ({"external_id": "a"}, "API_VALIDATION_ERROR"),
        ({"external_id": "a", "amount": "1"}, "API_VALIDATION_ERROR"),
        ({"external_id": "a", "amount": 1, "invoice_duration": 0}, "API_VALIDATION_ERROR"),
        ({"external_id": "a", "amount": 1, "currency": "USD"}, "UNSUPPORTED_CURRENCY"),
    ],
)
def test_an_invoice_that_breaks_a_rule_is_refused_with_a_code(
    asked: dict[str, Any], code: str, xendit: Call
) -> None:
    answer = xendit("POST", "/v2/invoices", json=asked)
    assert (answer.status_code, answer.json()["error_code"]) == (400, code)


def test_a_wrong_key_is_refused(xendit: Call) -> None:
    answer = xendit("GET", "/v2/invoices", key="other")
    assert (answer.status_code, answer.json()["error_code"]) == (401, "INVALID_API_KEY")


def test_too_many_calls_in_a_minute_are_refused(xendit: Call, gateways: Simulator) -> None:
    gateways.xendit.options.rate_per_minute = 2
    answers = [xendit("GET", "/v2/invoices") for _ in range(4)]
    assert [a.status_code for a in answers] == [200, 200, 429, 429]
    assert answers[2].json()["error_code"] == "RATE_LIMIT_EXCEEDED"
    assert answers[0].headers["Rate-Limit-Limit"] == "2"
    assert xendit("GET", "/refunds").status_code == 200  # each address has its own
    gateways.advance(61)
    assert xendit("GET", "/v2/invoices").status_code == 200


def test_a_session_fails_then_is_paid_and_tells_both_events(
    session: Session, act: Act, shop: Shop, xendit: Call
) -> None:
    made = session().json()
    assert act("xendit", made["payment_session_id"], "decline") == 200
    assert act("xendit", made["payment_session_id"], "pay", channel="DANA") == 200
    assert sorted(n["event"] for n in shop.heard) == [
        "payment.capture",
        "payment.failure",
        "payment_session.completed",
    ]
    capture, completed = (
        next(n["data"] for n in shop.heard if n["event"] == event)
        for event in ("payment.capture", "payment_session.completed")
    )
    assert capture["payment_id"] == completed["payment_id"]
    assert capture["captures"][0]["capture_amount"] == 150_000
    now = xendit("GET", f"/sessions/{made['payment_session_id']}").json()
    assert (now["status"], now["payment_id"]) == ("COMPLETED", capture["payment_id"])
    request = xendit("GET", f"/v3/payment_requests/{now['payment_request_id']}").json()
    assert request["status"] == "SUCCEEDED"


@pytest.mark.parametrize("session_first", [True, False])
def test_the_two_events_of_a_paid_session_come_in_either_order(
    session_first: bool, session: Session, act: Act, gateways: Simulator
) -> None:
    gateways.xendit.options.session_first = session_first
    act("xendit", session().json()["payment_session_id"], "pay")
    events = [call.document["event"] for call in gateways.webhooks.all]
    assert events == sorted(events, reverse=session_first)


def test_only_an_active_session_can_be_cancelled_and_nothing_is_told(
    session: Session, act: Act, xendit: Call, shop: Shop
) -> None:
    made = session().json()
    path = f"/sessions/{made['payment_session_id']}/cancel"
    first, again = xendit("POST", path), xendit("POST", path)
    assert first.json()["status"] == "CANCELED"
    assert (again.status_code, again.json()["error_code"]) == (422, "INVALID_SESSION_STATUS")
    assert act("xendit", made["payment_session_id"], "pay") == 409
    assert shop.heard == []


def test_a_session_ends_after_half_an_hour_and_late_money_leaves_it_expired(
    session: Session, act: Act, shop: Shop, xendit: Call, gateways: Simulator
) -> None:
    made = session().json()
    gateways.advance(1801)
    assert [n["event"] for n in shop.heard] == ["payment_session.expired"]
    assert act("xendit", made["payment_session_id"], "pay late") == 200
    assert [n["event"] for n in shop.heard] == ["payment_session.expired", "payment.capture"]
    assert xendit("GET", f"/sessions/{made['payment_session_id']}").json()["status"] == "EXPIRED"


def test_a_sessions_reference_may_repeat_but_a_customers_may_not_mean_another(
    session: Session,
) -> None:
    customer = {"reference_id": "buyer-1", "type": "INDIVIDUAL", "email": "a@buyer.example"}
    assert session(customer=customer).status_code == 201
    assert session(customer=customer).status_code == 201
    other = session(customer=customer | {"email": "b@buyer.example"})
    assert (other.status_code, other.json()["error_code"]) == (409, "DUPLICATE_ERROR")


def test_a_session_wants_https_and_ten_minutes(session: Session, gateways: Simulator) -> None:
    soon = (gateways.clock.utc() + timedelta(minutes=9)).isoformat()
    late = (gateways.clock.utc() + timedelta(minutes=11)).isoformat()
    codes = [
        session(success_return_url="http://shop.example").json()["error_code"],
        session(expires_at=soon).json()["error_code"],
        session(expires_at=late).status_code,
    ]
    assert codes == ["INVALID_URL", "INVALID_EXPIRY_DATE", 201]


@pytest.mark.parametrize(
    ("options", "event", "status"),
    [
        ({}, "refund.succeeded", "SUCCEEDED"),
        ({"nested_refund": True}, "refund.succeeded", "SUCCEEDED"),
        ({"refund_fails": "INSUFFICIENT_BALANCE"}, "refund.failed", "FAILED"),
    ],
)
def test_a_refund_is_pending_and_ends_with_a_webhook(
    options: dict[str, Any],
    event: str,
    status: str,
    invoice: Invoice,
    act: Act,
    xendit: Call,
    shop: Shop,
    gateways: Simulator,
) -> None:
    # given
    asked = {"xendit": options}
    assert requests.post(f"{gateways.url}/control/options", json=asked, timeout=10).ok
    made = invoice()
    act("xendit", made["id"], "pay")
    # when
    refund = {"invoice_id": made["id"], "amount": 50_000, "reason": "REQUESTED_BY_CUSTOMER"}
    answers = [
        xendit("POST", "/refunds", json=refund, headers={"idempotency-key": "k"}).json()
        for _ in range(2)
    ]
    gateways.advance(61)
    # then
    assert answers[0] == answers[1]
    assert answers[0]["status"] == "PENDING"
    told = shop.heard[-1]
    data = told["data"]["data"] if options.get("nested_refund") else told["data"]
    assert (told["event"], data["status"], data["amount"]) == (event, status, 50_000)
    listed = xendit("GET", "/refunds", params={"invoice_id": made["id"]}).json()["data"]
    assert [one["status"] for one in listed] == [status]


def test_refunds_that_cannot_be_are_refused(invoice: Invoice, act: Act, xendit: Call) -> None:
    by_card, by_bank = invoice("a")["id"], invoice("b")["id"]
    act("xendit", by_card, "pay", channel="CREDIT_CARD")
    act("xendit", by_bank, "pay", channel="BCA")

    def refused(**asked: Any) -> str:
        code: str = xendit("POST", "/refunds", json=asked).json()["error_code"]
        return code

    assert refused(invoice_id=by_card) == "API_VALIDATION_ERROR"
    assert refused(invoice_id=by_bank, reason="OTHERS") == "REFUND_NOT_SUPPORTED"
    assert refused(invoice_id=by_card, reason="OTHERS", amount=150_001) == (
        "MAXIMUM_REFUND_AMOUNT_REACHED"
    )
    assert refused(invoice_id="none", reason="OTHERS") == "DATA_NOT_FOUND"


def test_one_idempotency_key_is_for_one_refund(invoice: Invoice, act: Act, xendit: Call) -> None:
    made = invoice()["id"]
    act("xendit", made, "pay")
    asked = {"invoice_id": made, "reason": "OTHERS", "amount": 1}
    headers = {"idempotency-key": "k"}
    assert xendit("POST", "/refunds", json=asked, headers=headers).ok
    other = xendit("POST", "/refunds", json=asked | {"amount": 2}, headers=headers)
    assert (other.status_code, other.json()["error_code"]) == (409, "IDEMPOTENCY_ERROR")


def test_a_dispute_is_told_of_a_card_payment(invoice: Invoice, act: Act, shop: Shop) -> None:
    made = invoice()["id"]
    act("xendit", made, "pay", channel="CREDIT_CARD")
    act("xendit", made, "charge back")
    assert shop.heard[-1]["event"] == "dispute.action_required"
    assert shop.heard[-1]["amount"] == {"initial": "150000.00", "terminal": None}


@pytest.mark.parametrize(("action", "event"), [("lose", "dispute.lost"), ("win", "dispute.won")])
def test_a_dispute_ends_and_can_be_asked_for(
    action: str, event: str, invoice: Invoice, act: Act, xendit: Call, shop: Shop
) -> None:
    made = invoice()["id"]
    act("xendit", made, "pay", channel="CREDIT_CARD")
    act("xendit", made, "charge back")
    act("xendit", made, f"{action} the dispute")
    told = dict(shop.heard[-1])
    assert (told.pop("event"), told["amount"]["terminal"]) == (event, "150000.00")
    assert xendit("GET", f"/v1/disputes/{told['id']}").json() == told
    assert xendit("GET", "/v1/disputes/mi-dspt-0").status_code == 404


@pytest.mark.parametrize("test", ["invoice", "virtual_account", "ewallet", "qr"])
def test_the_dashboards_tests_are_the_same_each_time(
    test: str, gateways: Simulator, shop: Shop
) -> None:
    for _ in range(2):
        asked = {"gateway": "xendit", "dashboard_test": test}
        assert requests.post(f"{gateways.url}/control/send", json=asked, timeout=10).ok
    gateways.deliver()
    assert shop.heard[0] == shop.heard[1]


@pytest.mark.parametrize("shape", list(OLDER_SHAPES))
def test_older_shapes_can_be_sent(shape: str, gateways: Simulator, shop: Shop) -> None:
    asked = {
        "gateway": "xendit",
        "older_shape": shape,
        "reference": "order-1",
        "amount": 1000,
        "now": iso(gateways.clock.now()),
    }
    assert requests.post(f"{gateways.url}/control/send", json=asked, timeout=10).ok
    gateways.deliver()
    assert "order-1" in str(shop.heard[0])
