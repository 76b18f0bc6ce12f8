"""Orders and payments agree, over HTTP with a real worker: what gateways sent to a shop that got it
wrong.

Each test sends what came, lets the worker end, and looks at the order as a buyer, a person of the
shop, and the check of all money see it.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import requests
from django.contrib.auth import get_user_model
from django.utils import timezone

from orders.models import Order, Product
from payments import decisions
from payments.expiry import expire_unpaid_orders
from payments.hold_codes import Decision, HoldCode
from payments.models import Hold, PaymentNotification
from payments.money_check import check_money
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.local.deadline import wait_until
from tests.acceptance.api import Api
from tests.acceptance.conftest import SharedStage, Shop, Stage
from tests.faults.faults import Status
from tests.faults.proxy import FaultProxy
from tests.integration.orders.shop import a_product, aged, numbers, place
from tests.integration.payments.gateway_documents import midtrans_document, xendit_document
from tests.integration.payments.gateway_truth import TOTAL
from tests.unit.payments import midtrans_notifications as midtrans
from tests.unit.payments import xendit_callbacks as xendit

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("celery_setup"),
]

XENDIT_TOKEN = "token-of-a-provider-that-checkout-does-not-offer"
STOCKED = 10
HANDFUL = 6  # emails to one buyer in an hour: a few of payments, and the order's confirmation


@pytest.fixture(scope="module")
def api(
    shared_stage: SharedStage, shared_proxy: FaultProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    """The API of a shop whose checkout has ceased to offer Xendit."""
    environment = {
        **shared_stage.get().environment,
        "PAYMENT_PROVIDERS": "midtrans,sandbox",
        "XENDIT_CALLBACK_TOKEN": XENDIT_TOKEN,
    }
    with Api(environment, tmp_path_factory.mktemp("money"), shared_proxy.url) as running:
        yield running


@dataclass
class Case:
    """One order, and all who have to do with it."""

    api: Api
    shop: Shop
    stage: Stage
    order: Order
    product: Product

    def midtrans(self, *words: str) -> None:
        """Midtrans notifies: `a:settlement` is transaction a, settled."""
        for word in words:
            which, _, state = word.partition(":")
            self.midtrans_sends(midtrans_document(state, self.order.pk, f"{which}-{self.order.pk}"))

    def midtrans_sends(self, document: dict[str, Any]) -> None:
        answer = requests.post(
            self.api.url("/v1/webhooks/midtrans"), data=midtrans.body(document), timeout=60
        )
        assert answer.status_code == 200, answer.text

    def xendit(self, *words: str) -> None:
        for word in words:
            self.xendit_sends(xendit_document(word, self.order.pk, f"py-{self.order.pk}"))

    def xendit_sends(self, document: dict[str, Any]) -> None:
        answer = requests.post(
            self.api.url("/v1/webhooks/xendit"),
            json=document,
            headers={"x-callback-token": XENDIT_TOKEN},
            timeout=60,
        )
        assert answer.status_code == 200, answer.text

    def settle(self) -> None:
        """Wait until the worker has ended with all events, and nothing failed."""

        def all_processed() -> bool:
            finished = ProcessedEvent.objects.filter(status__in=ProcessedEvent.FINISHED)
            return not OutboxEvent.objects.exclude(event_id__in=finished.values("event_id"))

        wait_until(all_processed, seconds=60, what="the worker to end", every=0.1)
        self.shop.wait_for_empty_queue()
        assert self.shop.in_dlq() == []
        self.order.refresh_from_db()

    def shown(self) -> tuple[str, bool]:
        """What the buyer sees: the order's state, and whether it is held."""
        answer = requests.get(self.api.url(f"/v1/orders/{self.order.pk}"), timeout=30).json()
        return answer["status"], answer["is_held"]

    @property
    def shelf(self) -> tuple[int, int]:
        return numbers(self.product)

    def holds(self) -> list[str]:
        return sorted(
            Hold.objects.filter(order=self.order, closed_at=None).values_list("code", flat=True)
        )

    def is_right(self) -> bool:
        """Whether the check of all money finds nothing."""
        found = [str(one) for one in check_money()]
        assert found == []
        return True

    def emails_of(self, kind: str) -> int:
        return sum(f".{kind}@" in str(email["Message-ID"]) for email in self.shop.emails())


def check_out(api: Api, product: Product, method: str = "midtrans") -> Order:
    answer = requests.post(
        api.url("/v1/checkout"),
        json={
            "items": [{"sku": product.sku, "quantity": 2}],
            "email": "buyer@mail.example",
            "payment_method": method,
        },
        headers={"Idempotency-Key": uuid4().hex},
        timeout=30,
    )
    assert answer.status_code == 201, answer.text
    return Order.objects.get(pk=answer.json()["order_id"])


@pytest.fixture
def case(shop: Shop, api: Api, stage: Stage, proxy: FaultProxy) -> Case:
    product = a_product(stocked=STOCKED, price_rupiah=TOTAL // 2)
    return Case(api, shop, stage, check_out(api, product), product)


class Staff:
    """A person of the shop in the admin, over HTTP."""

    def __init__(self, api: Api, name: str) -> None:
        get_user_model().objects.create_superuser(name, password="a-long-password")
        self._api, self._session = api, requests.Session()
        self.post("/admin/login/", username=name, password="a-long-password")
        assert "sessionid" in self._session.cookies

    def get(self, path: str) -> requests.Response:
        return self._session.get(self._api.url(path), timeout=60)

    def post(self, path: str, **form: str) -> requests.Response:
        page = self.get(path)
        assert page.ok, (path, page.status_code)
        [token, *_] = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text) or [""]
        return self._session.post(
            self._api.url(path), data={**form, "csrfmiddlewaretoken": token}, timeout=60
        )


@pytest.fixture
def person(case: Case) -> Staff:
    return Staff(case.api, "ayu")


def decide(case: Case, code: HoldCode, decision: Decision) -> None:
    """Two persons decide on the order's hold of this kind."""
    for name in ("sari", "budi"):
        get_user_model().objects.create_user(name)
    hold = Hold.objects.get(order=case.order, code=code, closed_at=None)
    decisions.request_decision(hold_id=hold.pk, decision=decision, reason="looked at", actor="sari")
    decisions.accept_request(hold_id=hold.pk, actor="budi")


# -- 1. Reversal while another transaction is open -------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["b:pending", "a:settlement", "a:deny"],
        ["b:pending", "a:capture_accept", "a:cancel"],
        ["b:capture_challenge", "a:capture_accept", "a:cancel"],
        ["b:authorize", "a:settlement", "a:deny"],
    ],
)
def test_an_order_whose_money_is_reversed_is_not_paid_by_a_transaction_that_is_open(
    words: list[str], case: Case
) -> None:
    case.midtrans(*words)
    case.settle()

    assert case.shown()[0] == "pending"
    assert not case.order.can_be_shipped
    assert case.shelf == (STOCKED, 2)
    assert case.is_right()


# -- 2. Settled after cancelled --------------------------------------------------------------------


def test_a_transaction_that_is_settled_after_it_was_cancelled_pays_its_order(case: Case) -> None:
    case.midtrans("a:capture_accept", "a:cancel")
    case.settle()
    case.midtrans("a:settlement")
    case.settle()

    assert case.shown() == ("paid", False)
    assert case.shelf == (STOCKED - 2, 0)
    assert case.is_right()


@pytest.mark.parametrize(("last", "holds"), [("refund", []), ("chargeback", [HoldCode.CHARGEBACK])])
def test_money_goes_back_after_cancelled_and_settled(
    last: str, holds: list[str], case: Case
) -> None:
    case.midtrans("a:capture_accept", "a:cancel", "a:settlement", f"a:{last}")
    case.settle()

    assert case.shown()[0] == "refunded"
    assert case.holds() == holds
    assert case.shelf == (STOCKED, 0)
    assert case.is_right()


# -- 3. Two settlements, one of them lost ----------------------------------------------------------


def test_the_second_payment_takes_the_place_of_the_first_once_it_is_accepted(
    case: Case, proxy: FaultProxy
) -> None:
    proxy.inject(Status(503))  # the worker hears of it when all of it is over
    case.midtrans("a:settlement", "b:settlement", "a:deny")
    proxy.clear()
    case.settle()
    assert case.shown() == ("paid", True)
    assert case.holds() == [HoldCode.SURPLUS]
    aged(case.order, timedelta(days=3))
    assert expire_unpaid_orders() == 0

    decide(case, HoldCode.SURPLUS, Decision.ACCEPT)
    case.settle()

    assert case.shown() == ("paid", False)
    assert case.order.can_be_shipped
    assert case.shelf == (STOCKED - 2, 0)
    assert case.is_right()


def test_money_after_a_refund_is_held_and_pays_the_order_once_it_is_accepted(case: Case) -> None:
    case.midtrans("a:settlement", "a:refund", "b:settlement")
    case.settle()
    assert case.shown()[1]
    assert case.holds() == [HoldCode.PAID_AFTER_REFUND]

    decide(case, HoldCode.PAID_AFTER_REFUND, Decision.ACCEPT)
    case.settle()

    assert case.shown() == ("paid", False)
    assert case.order.can_be_shipped
    assert case.shelf == (STOCKED - 2, 0)
    assert case.is_right()


# -- 4. A declined card ----------------------------------------------------------------------------


def test_a_declined_card_leaves_the_order_waiting_and_another_card_pays_it(case: Case) -> None:
    case.midtrans("a:deny")
    case.settle()
    assert case.shown() == ("pending", False)
    assert case.shelf == (STOCKED, 2)
    assert case.emails_of("payment_failed") == 1

    case.midtrans("b:capture_accept")
    case.settle()

    assert case.shown() == ("paid", False)
    assert case.shelf == (STOCKED - 2, 0)
    assert case.is_right()


# -- 5. The sweep after a day ----------------------------------------------------------------------


def test_the_sweep_expires_no_order_whose_payments_event_is_still_queued(
    case: Case, proxy: FaultProxy
) -> None:
    proxy.inject(Status(503))
    case.midtrans("a:settlement")
    aged(case.order, timedelta(days=3))

    assert expire_unpaid_orders() == 0
    proxy.clear()
    case.settle()
    assert case.shown() == ("paid", False)


@pytest.mark.parametrize("word", ["a:capture_challenge", "a:authorize"])
def test_the_sweep_expires_no_order_whose_money_is_in_doubt(word: str, case: Case) -> None:
    case.midtrans(word)
    case.settle()
    aged(case.order, timedelta(days=3))

    assert expire_unpaid_orders() == 0
    assert case.shown()[0] == "pending"
    case.midtrans("a:capture_accept")
    case.settle()
    assert case.shown() == ("paid", False)


def test_the_sweep_expires_no_order_that_is_held_with_money_in(case: Case) -> None:
    case.midtrans_sends(
        midtrans.card("settlement", order_id=str(case.order.pk), gross_amount="149000.00")
    )
    case.settle()
    assert case.shown() == ("pending", True)
    aged(case.order, timedelta(days=3))

    assert expire_unpaid_orders() == 0
    assert case.shown() == ("pending", True)


def test_the_sweep_expires_what_nobody_paid_and_says_goodbye(case: Case) -> None:
    case.midtrans("a:deny")
    case.settle()
    aged(case.order, timedelta(days=3))

    assert expire_unpaid_orders() == 1
    case.settle()

    assert case.shown() == ("expired", False)
    assert case.emails_of("order_expired") == 1
    assert case.shelf == (STOCKED, 0)


# -- 6. One click ----------------------------------------------------------------------------------


def test_one_click_ends_one_hold_and_ships_nothing_that_waits_for_its_payment(
    case: Case, person: Staff
) -> None:
    for amount in ("149000.00", "1000.00"):
        case.midtrans_sends(
            midtrans.card(
                "settlement",
                order_id=str(case.order.pk),
                transaction_id=f"t-{amount}",
                gross_amount=amount,
            )
        )
    case.settle()
    first, second = Hold.objects.filter(order=case.order, closed_at=None).order_by("id")
    page = f"/admin/operations/held/orders/{case.order.pk}/"

    person.post(page, action="release", reason="it can be shipped")
    assert len(case.holds()) == 2

    person.post(page, action="dismiss", hold=str(first.pk), reason="looked at")
    assert case.shown() == ("pending", True)
    person.post(page, action="dismiss", hold=str(second.pk), reason="looked at")

    case.settle()
    assert case.shown() == ("pending", False)
    assert not case.order.can_be_shipped
    person.post(
        f"/admin/operations/orders/{case.order.pk}/shipping/", shipped_at="2026-11-30T00:00"
    )
    case.order.refresh_from_db()
    assert case.order.shipped_at is None


# -- 7. A provider that checkout does not offer ----------------------------------------------------


def test_a_provider_that_checkout_ceased_to_offer_still_pays_its_orders(case: Case) -> None:
    placed = place((case.product, 2), payment_method="xendit")
    case.order = Order.objects.get(pk=placed.order_id)

    case.xendit("paid")
    case.settle()

    assert case.shown() == ("paid", False)
    assert case.is_right()


# -- 8. Proven, with one odd field -----------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"settlement_time": "2026-11-11 00:17:05.123456"},
        {"settlement_time": "2026-11-11T00:17:05+07:00"},
        {"transaction_time": None, "settlement_time": None},
        {"fraud_status": 7},
        {"refund_amount": 50_000},
        {"refund_amount": 0.5, "refunds": [{"refund_amount": "1.00"}]},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_midtrans_odd_field_is_stored_and_the_money_is_taken_or_a_persons_case(
    changes: dict[str, Any], case: Case
) -> None:
    case.midtrans_sends(midtrans.bank_transfer(order_id=str(case.order.pk), **changes))
    case.settle()

    stored = PaymentNotification.objects.get()
    status, is_held = case.shown()
    assert status == "paid" or is_held or stored.outcome == "unreadable"
    assert case.is_right()


def without(document: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != name}


def xendit_names(order_id: str) -> dict[str, dict[str, Any]]:
    """Callbacks of Xendit that an earlier release refused or forgot."""
    data = {"reference_id": f"{order_id}-1", "currency": "IDR", "created": "2026-11-10T17:15:20Z"}
    session = {
        "payment_session_id": f"ps-{order_id}",
        "status": "COMPLETED",
        "amount": TOTAL,
        "updated": "2026-11-10T17:17:05Z",
        "payment_id": f"py-{order_id}",
    }
    wallet = {
        "id": f"ewc_{order_id}",
        "status": "SUCCEEDED",
        "charge_amount": TOTAL,
        "capture_amount": TOTAL,
        "channel_code": "ID_OVO",
        "updated": "2026-11-10T17:17:05Z",
    }
    qr = {
        "id": f"qrpy_{order_id}",
        "qr_id": "qr_61cb3576-3a25-4d35-8d15-0e8e3bdba4f2",
        "amount": TOTAL,
        "status": "SUCCEEDED",
        "channel_code": "ID_DANA",
    }
    request = {
        "id": f"pr-{order_id}",
        "payment_request_id": f"pr-{order_id}",
        "status": "SUCCEEDED",
        "amount": TOTAL,
    }
    return {
        "invoice without currency": without(xendit.invoice(external_id=order_id), "currency"),
        "session": {"event": "payment_session.completed", "data": {**data, **session}},
        "wallet": {"event": "ewallet.capture", "data": {**data, **wallet}},
        "qr": {"event": "qr.payment", "data": {**data, **qr}},
        "request": {"event": "payment_request.succeeded", "data": {**data, **request}},
        "virtual account": {
            "id": "58a435201b6ce2a355f46070",
            "payment_id": f"va-{order_id}",
            "callback_virtual_account_id": "58a434ba39cc9e4a230d5a2c",
            "external_id": order_id,
            "account_number": "1001470127",
            "bank_code": "MANDIRI",
            "merchant_code": "88464",
            "amount": TOTAL,
            "transaction_timestamp": "2026-11-10T17:17:05Z",
        },
    }


@pytest.mark.parametrize("name", xendit_names(""))
def test_xendits_other_names_are_stored_and_the_money_is_taken_or_a_persons_case(
    name: str, case: Case
) -> None:
    placed = place((case.product, 2), payment_method="xendit")
    case.order = Order.objects.get(pk=placed.order_id)

    case.xendit_sends(xendit_names(placed.order_id)[name])
    case.settle()

    stored = PaymentNotification.objects.get()
    status, is_held = case.shown()
    assert status == "paid" or is_held or stored.outcome == "unreadable", stored.outcome
    assert case.is_right()


def test_a_notification_as_long_as_none_should_be_is_taken(case: Case) -> None:
    document = midtrans.card("settlement", order_id=str(case.order.pk))
    case.midtrans_sends({**document, "custom_field1": "x" * 1_500_000})
    case.settle()

    assert case.shown() == ("paid", False)


# -- 9. An attempt's reference, and the dashboards' tests ------------------------------------------


def test_an_attempts_reference_finds_its_order(case: Case) -> None:
    case.midtrans_sends(midtrans.card("settlement", order_id=f"{case.order.pk}-1"))
    case.settle()

    assert case.shown() == ("paid", False)


def test_the_dashboards_test_buttons_are_answered_and_change_nothing(case: Case) -> None:
    for _ in range(2):
        case.midtrans_sends(
            midtrans.bank_transfer(
                order_id="payment_notif_test_G141532850_c4b4a5a2-2b3f-4ef5-9b5b-0c5fd8a1f0a1",
                transaction_id="513f1f01-c9da-474c-9fc9-d5c64364b709",
                gross_amount="105000.00",
            )
        )
        case.xendit_sends(
            without(
                xendit.invoice(
                    invoice_id="579c8d61f23fa4ca35e52da4",
                    external_id="invoice_123124123",
                    amount=50_000,
                ),
                "currency",
            )
        )

    assert set(PaymentNotification.objects.values_list("outcome", flat=True)) == {"test"}
    case.settle()
    assert case.shown() == ("pending", False)


# -- 10. Moments that no page can show -------------------------------------------------------------

PAGES = (
    "/admin/operations/",
    "/admin/operations/held/",
    "/admin/operations/dead-letters/",
    "/admin/orders/order/",
    "/admin/payments/payment/",
    "/admin/payments/paymentnotification/",
    "/admin/events/outboxevent/",
    "/admin/events/processedevent/",
)


def test_no_moment_that_somebody_sends_takes_a_page_or_a_command_away(
    case: Case, person: Staff
) -> None:
    case.midtrans_sends(
        midtrans.bank_transfer(
            order_id=str(case.order.pk),
            transaction_time="0001-01-01 00:00:00",
            settlement_time="0001-01-01 00:00:00",
            expiry_time="9999-12-31 23:59:59",
        )
    )
    case.xendit_sends(
        xendit.invoice(updated="9999-12-31T23:59:59Z", paid_at="0001-01-01T00:00:00Z")
    )
    case.settle()
    assert case.shown() == ("paid", False)
    for moment in (
        "9999-12-31T23:59:59-14:00",
        "9999-12-31T23:59:59+23:59",
        "0001-01-01T00:00:00Z",
    ):
        event = {
            "event_id": uuid4().hex,
            "event_type": "payment.processed",
            "order_id": str(case.order.pk),
            "payment_id": str(uuid4()),
            "user_id": "guest",
            "amount_rupiah": TOTAL,
            "created_at": moment,
        }
        case.shop.client.send_message(QueueUrl=case.shop.queues.url, MessageBody=json.dumps(event))
    case.shop.wait_for_empty_queue()

    listed = subprocess.run(
        [sys.executable, "manage.py", "dlq", "list"],
        env={**os.environ, **case.stage.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.returncode == 0, listed.stderr
    for page in PAGES:
        assert person.get(page).status_code == 200, page
    assert len(case.shop.in_dlq()) == 3


# -- 11. Very many refunds -------------------------------------------------------------------------


def test_thousands_of_refunds_in_one_notification_are_held_and_flood_nobody(case: Case) -> None:
    case.midtrans("a:settlement")
    case.settle()
    refunds = [{"refund_key": f"r{n}", "refund_amount": "1.00"} for n in range(3_500)]
    case.midtrans_sends(
        midtrans.card(
            "partial_refund",
            order_id=str(case.order.pk),
            transaction_id=f"a-{case.order.pk}",
            refund_amount="3500.00",
            refunds=refunds,
        )
    )
    case.settle()

    assert case.shown()[1]
    assert len(case.shop.emails()) <= HANDFUL
    assert case.is_right()


# -- 12. Chargeback after shipping -----------------------------------------------------------------


def test_a_chargeback_after_shipping_brings_no_goods_back_to_the_shelf(
    case: Case, person: Staff
) -> None:
    case.midtrans("a:settlement")
    case.settle()
    now = timezone.localtime().strftime("%Y-%m-%dT%H:%M")
    person.post(
        f"/admin/operations/orders/{case.order.pk}/shipping/",
        shipped_at=now,
        tracking_number="JNE-1",
    )
    case.order.refresh_from_db()
    assert case.order.shipped_at is not None

    case.midtrans("a:chargeback")
    case.settle()

    assert case.shown() == ("refunded", True)
    assert case.shelf == (STOCKED - 2, 0)
    assert case.holds() == [HoldCode.CHARGEBACK, HoldCode.GOODS_OUT]
    assert case.is_right()


# -- A buyer who gives the order up ----------------------------------------------------------------


def test_money_of_an_order_that_its_buyer_cancelled_is_held(case: Case) -> None:
    answer = requests.post(case.api.url(f"/v1/orders/{case.order.pk}/cancel"), timeout=30)
    assert answer.status_code == 200, answer.text
    assert case.shelf == (STOCKED, 0)

    case.midtrans("a:settlement")
    case.settle()

    assert case.shown() == ("paid", True)
    assert case.holds() == [HoldCode.PAID_AFTER_CANCEL]
    assert case.is_right()


def test_nobody_cancels_an_order_whose_money_is_in(case: Case, proxy: FaultProxy) -> None:
    proxy.inject(Status(503))
    case.midtrans("a:settlement")
    answer = requests.post(case.api.url(f"/v1/orders/{case.order.pk}/cancel"), timeout=30)
    proxy.clear()

    assert answer.status_code == 409
    case.settle()
    assert case.shown() == ("paid", False)
