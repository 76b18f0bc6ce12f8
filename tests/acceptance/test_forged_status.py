"""Who has seen one signed notification can send another one under the same proof: over HTTP, with a
real API and a real worker that asks the gateways, it changes nothing.

One API, one worker and one process of gateways serve all pairs (what the gateway shows, what the
forged notification says), each with an order of its own.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
import requests
from django.conf import settings

from orders.models import Order
from payments.models import Payment, PaymentNotification, PaymentRefund
from payments.money_check import check_money
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.local.deadline import wait_until
from skincare.local.gateways.actions import act_on_invoice, act_on_snap
from skincare.local.gateways.simulator import Simulator
from tests.acceptance.api import Api
from tests.acceptance.conftest import Stage
from tests.integration.gateways.conftest import SECRET_KEY, SERVER_KEY
from tests.integration.orders.shop import a_product
from tests.unit.payments import midtrans_notifications

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]

UNPAID, PAID = ("pending", 0, 1), ("paid", 1, 0)
#: What Midtrans shows → what the buyer and the bank did, and (status, sold, reserved) of the order.
MIDTRANS_SHOWS = {
    "pending": (["pick permata_va"], UNPAID),
    "settlement": (["pick permata_va", "pay"], PAID),
    "capture": (["pick credit_card"], PAID),
    "deny": (["pick permata_va", "decline"], UNPAID),
    "expire": (["pick permata_va", "expire"], UNPAID),
    "reversal": (["pick permata_va", "pay", "reverse"], UNPAID),
    "chargeback": (["pick credit_card", "settle", "charge back"], ("refunded", 0, 0)),
}
MIDTRANS_SAYS = [
    *("pending", "settlement", "capture", "authorize", "deny", "expire", "cancel", "failure"),
    *("refund", "partial_refund", "chargeback", "partial_chargeback", "something new"),
]
CODES = {"pending": "201", "authorize": "201", "deny": "202", "expire": "202", "cancel": "202"}
XENDIT_SHOWS = {
    "PENDING": ([], UNPAID),
    "PAID": (["pay"], PAID),
    "EXPIRED": (["expire"], UNPAID),
}
XENDIT_SAYS = ["PENDING", "PAID", "SETTLED", "EXPIRED", "SOMETHING", "refund.succeeded"]


@dataclass
class Pair:
    """One order, what its gateway shows, and what a forged notification says of it."""

    provider: str
    shown: str
    said: str
    expected: tuple[str, int, int]
    order_id: str = ""

    def __str__(self) -> str:
        return f"{self.provider}: {self.shown}, said {self.said}"


PAIRS = [
    Pair("midtrans", shown, said, expected)
    for shown, (_, expected) in MIDTRANS_SHOWS.items()
    for said in MIDTRANS_SAYS
] + [
    Pair("xendit", shown, said, expected)
    for shown, (_, expected) in XENDIT_SHOWS.items()
    for said in XENDIT_SAYS
]


@dataclass
class Shop:
    """The API and the gateways, as buyers and forgers reach them."""

    api: Api
    gateways: Simulator
    sku: str

    def order_and_page(self, pair: Pair) -> None:
        """A buyer checks out and opens the payment page."""
        answer = requests.post(
            self.api.url("/v1/checkout"),
            json={
                "items": [{"sku": self.sku, "quantity": 1}],
                "email": "buyer@mail.example",
                "payment_method": pair.provider,
            },
            headers={"Idempotency-Key": uuid4().hex},
            timeout=60,
        )
        assert answer.status_code == 201, answer.text
        pair.order_id = answer.json()["order_id"]
        page = requests.post(
            self.api.url(f"/v1/orders/{pair.order_id}/payments"),
            headers={"Idempotency-Key": uuid4().hex},
            timeout=60,
        )
        assert page.status_code == 201, page.text

    def happen(self, pair: Pair) -> None:
        """The buyer and the bank do what leads to what the gateway shows; each is notified."""
        token = Payment.objects.get(order_id=pair.order_id).session_id
        if pair.provider == "xendit":
            for step in XENDIT_SHOWS[pair.shown][0]:
                invoice = self.gateways.xendit.invoices[token]
                act_on_invoice(self.gateways.xendit, invoice, step, {"channel": "QRIS"})
            return
        for step in MIDTRANS_SHOWS[pair.shown][0]:
            action, _, method = step.partition(" ") if step.startswith("pick") else (step, "", "")
            session = self.gateways.midtrans.sessions[token]
            act_on_snap(self.gateways.midtrans, session, action, {"method": method})

    def forge(self, pair: Pair) -> None:
        """Send what the pair says, proven as the gateway's own: of the transaction, and of another
        one that the gateway does not know."""
        if pair.provider == "xendit":
            self._forge_xendit(pair)
            return
        token = Payment.objects.filter(order_id=pair.order_id).latest("number").session_id
        session = self.gateways.midtrans.sessions[token]
        true = self.gateways.midtrans.document(session.transactions[-1], code=200)
        for transaction_id in (true["transaction_id"], str(uuid4())):
            document = true | {
                "transaction_status": pair.said,
                "status_code": CODES.get(pair.said, "200"),
                "transaction_id": transaction_id,
                "fraud_status": "accept",
                "refund_amount": true["gross_amount"],
                "refund_key": "forged",
            }
            document.pop("refunds", None)
            body = midtrans_notifications.body(document, server_key=SERVER_KEY)
            self._post("midtrans", body)

    def _forge_xendit(self, pair: Pair) -> None:
        payment = Payment.objects.filter(order_id=pair.order_id).latest("number")
        invoice = self.gateways.xendit.invoices[payment.session_id]
        document = self.gateways.xendit.invoice_callback(invoice)
        document |= {"status": pair.said, "paid_amount": document["amount"]}
        if pair.said == "refund.succeeded":
            now = datetime.now(UTC).isoformat()
            data = {"id": f"rfd-{uuid4()}", "invoice_id": invoice.id, "status": "SUCCEEDED"}
            data |= {"amount": document["amount"], "currency": "IDR", "created": now}
            document = {"event": pair.said, "business_id": "b", "created": now, "data": data}
        self._post("xendit", json.dumps(document).encode())

    def _post(self, provider: str, body: bytes) -> None:
        answer = requests.post(
            self.api.url(f"/v1/webhooks/{provider}"),
            data=body,
            headers={
                "Content-Type": "application/json",
                "x-callback-token": settings.XENDIT_CALLBACK_TOKEN,
            },
            timeout=60,
        )
        assert answer.status_code == 200, answer.text


@pytest.fixture
def shop(set_up: Any, tmp_path: Any, sqs_server: str, transactional_db: None) -> Iterator[Shop]:
    product = a_product(stocked=len(PAIRS), price_rupiah=150_000)
    with Simulator(
        midtrans_server_key=SERVER_KEY,
        xendit_secret_key=SECRET_KEY,
        xendit_callback_token=settings.XENDIT_CALLBACK_TOKEN,
    ) as gateways:
        stage_of: AbstractContextManager[Stage] = set_up(
            tmp_path,
            1,
            DJANGO_SETTINGS_MODULE="tests.acceptance.gateway_settings",
            MIDTRANS_SERVER_KEY=SERVER_KEY,
            MIDTRANS_SNAP_URL=gateways.midtrans_snap_url,
            MIDTRANS_API_URL=gateways.midtrans_api_url,
            XENDIT_SECRET_KEY=SECRET_KEY,
            XENDIT_CALLBACK_TOKEN=settings.XENDIT_CALLBACK_TOKEN,
            XENDIT_API_URL=gateways.xendit_api_url,
        )
        with stage_of as stage, Api(stage.environment, tmp_path, sqs_server) as api:
            gateways.midtrans.webhook_url = api.url("/v1/webhooks/midtrans")
            gateways.xendit.webhook_url = api.url("/v1/webhooks/xendit")
            yield Shop(api, gateways, product.sku)


def wait_for_rest() -> None:
    """Wait until every event is done, and every notification has its outcome."""

    def rests() -> bool:
        waiting = PaymentNotification.objects.filter(outcome="waiting").exists()
        done = ProcessedEvent.objects.filter(status__in=["done", "skipped"]).values("event_id")
        return not waiting and not OutboxEvent.objects.exclude(event_id__in=done).exists()

    wait_until(rests, seconds=240, what="all events to be done", every=0.3)


def stands(pair: Pair) -> tuple[str, int, int]:
    """The order's status, and how many pieces are sold and reserved."""
    order = Order.objects.get(pk=pair.order_id)
    movements = list(order.movements.all())
    sold = -sum(one.stock_delta for one in movements)
    return order.status, sold, sum(one.reserved_delta for one in movements)


def moved() -> tuple[Any, ...]:
    """All that must not move: events that tell of money, refunds, and each payment's state."""
    return (
        OutboxEvent.objects.exclude(event_type="payment.reported").count(),
        list(PaymentRefund.objects.order_by("id").values_list("id", flat=True)),
        {
            one.pk: (one.status, one.refunded_rupiah, one.times_paid, one.times_failed)
            for one in Payment.objects.exclude(transaction_id="", session_id="")
        },
    )


def test_a_forged_status_under_a_valid_proof_changes_nothing(shop: Shop) -> None:
    # given
    with ThreadPoolExecutor(4) as buyers:
        list(buyers.map(shop.order_and_page, PAIRS))
    for pair in PAIRS:
        shop.happen(pair)
    wait_until(
        lambda: all(call.state == "done" for call in shop.gateways.webhooks.all),
        seconds=120,
        what="all webhooks to be answered",
        every=0.2,
    )
    wait_for_rest()
    assert {str(pair): stands(pair) for pair in PAIRS} == {str(p): p.expected for p in PAIRS}
    before = moved()
    asked = len(shop.gateways.midtrans_api.calls), len(shop.gateways.xendit_api.calls)

    # when
    for pair in PAIRS:
        shop.forge(pair)
    wait_for_rest()

    # then
    assert {str(pair): stands(pair) for pair in PAIRS} == {str(p): p.expected for p in PAIRS}
    events, refunds, payments = moved()
    assert (events, refunds) == before[:2]
    assert {pk: payments[pk] for pk in before[2]} == before[2]
    assert len(shop.gateways.midtrans_api.calls) > asked[0]
    assert len(shop.gateways.xendit_api.calls) > asked[1]
    assert list(check_money()) == []
