"""Whatever a gateway does wrong, in whatever call: no attempt is lost or doubled, nothing is
charged or given back twice, and nobody else notices.

The fault takes all calls to the one gateway while a step is tried, and is gone when it is tried
again. What the gateway has taken and given back is counted at the gateway.
"""

import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.contrib.auth import get_user_model
from django.test import Client

from orders.models import Order
from payments.models import Payment, PaymentRefund, RefundRequest
from payments.money_check import check_money
from skincare.events.consumer import process
from skincare.events.models import OutboxEvent
from skincare.local.deadline import busyness
from skincare.local.gateways.simulator import Simulator
from tests.faults.faults import CutAnswer, Fault, Garbage, Hang, LostAnswer, Slow, Status
from tests.faults.proxy import FaultProxy
from tests.integration.gateways.test_calls import says, server
from tests.integration.payments.gateways import an_order
from tests.integration.payments.test_confirmation import PAID, UNPAID, held_for, shown, work
from tests.integration.payments.test_paying import buyer, buyer_pays, charges, pay
from tests.integration.payments.test_refunding import (
    DoesAndSays,
    at_the_gateway,
    decide,
    paid,
    send,
)

pytestmark = pytest.mark.django_db

READ_SECONDS = 0.3
PATIENCE = 10.0  # seconds
#: Faults of the proxy; "away" and "certificate" are made otherwise.
FAULTS: dict[str, Fault | None] = {
    "away": None,
    "certificate": None,
    "never answers": Hang(),
    "answers after the time-out": Slow(3 * READ_SECONDS),
    "500": Status(500),
    "503": Status(503),
    "429": Status(429),
    "garbage": Garbage(b"\x00\x01\x02"),
    "half a document": Garbage(b'{"token": "t", "redirect'),
    "a list": Garbage(b"[1, 2]"),
    "an empty object": Garbage(b"{}"),
    "HTML": Garbage(),
    "cut off": CutAnswer(),
    "answer lost": LostAnswer(),
}
#: With any other, both gateways have the time that they have in production.
NEVER_IN_TIME = ("never answers", "answers after the time-out")
SETTINGS = {
    "midtrans": ("MIDTRANS_API_URL", "MIDTRANS_SNAP_URL"),
    "xendit": ("XENDIT_API_URL",),
}


@dataclass(frozen=True)
class Trouble:
    """Makes one gateway misbehave: `with trouble("midtrans", "500"): …`."""

    gateways: Simulator
    settings: LazySettings
    certificate: ssl.SSLContext

    @contextmanager
    def __call__(self, name: str, fault: str) -> Iterator[None]:
        before = {one: getattr(self.settings, one) for one in SETTINGS[name]}
        patience = (self.settings.GATEWAY_CONNECT_SECONDS, self.settings.GATEWAY_READ_SECONDS)
        slower = busyness()
        with (
            FaultProxy(self.gateways.url) as proxy,
            server(says("200 OK", "{}"), context=self.certificate) as impostor,
        ):
            url = impostor if fault == "certificate" else proxy.url
            for one in before:
                setattr(self.settings, one, before[one].replace(self.gateways.url, url))
            if fault in NEVER_IN_TIME:
                self.settings.GATEWAY_CONNECT_SECONDS = 1 * slower
                self.settings.GATEWAY_READ_SECONDS = READ_SECONDS * slower
            if fault == "away":
                proxy.refuse()
            injected = FAULTS[fault]
            if isinstance(injected, Slow):
                injected = Slow(injected.seconds * slower)
            if injected is not None:
                proxy.inject(injected)
            try:
                yield
            finally:
                for one, value in before.items():
                    setattr(self.settings, one, value)
                self.settings.GATEWAY_CONNECT_SECONDS, self.settings.GATEWAY_READ_SECONDS = patience


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A certificate for localhost that nobody vouches for."""
    folder: Path = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


@pytest.fixture
def trouble(gateways: Simulator, settings: LazySettings, certificate: ssl.SSLContext) -> Trouble:
    return Trouble(gateways, settings, certificate)


matrix = pytest.mark.parametrize(
    ("name", "fault"), [(name, fault) for name in SETTINGS for fault in FAULTS]
)
OTHER = {"midtrans": "xendit", "xendit": "midtrans"}


def buys(gateways: Simulator, name: str) -> None:
    """Somebody else buys through the other gateway meanwhile, and a checkout of this one works."""
    order = an_order(OTHER[name])
    assert pay(order).status_code == 201
    buyer_pays(gateways, order)
    Notify(gateways)()
    assert shown(work(order)) == PAID
    assert shown(an_order(name)) == UNPAID


class Notify:
    """Hands the shop what the gateways have notified since the last time."""

    def __init__(self, gateways: Simulator) -> None:
        self._gateways = gateways
        self._told = 0

    def __call__(self) -> None:
        calls = self._gateways.webhooks.all
        for call in calls[self._told :]:
            answer = Client().post(
                f"/v1/webhooks/{call.gateway}",
                data=call.document,
                content_type="application/json",
                headers=dict(call.headers),
            )
            assert answer.status_code == 200, answer.content
        self._told = len(calls)


def payable(gateways: Simulator, name: str) -> int:
    """How many pages of the gateway somebody could pay on now."""
    if name == "midtrans":
        return sum(map(gateways.midtrans.page_is_open, gateways.midtrans.sessions.values()))
    return sum(one.status == "PENDING" for one in gateways.xendit.invoices.values())


def assert_paid_once(gateways: Simulator, name: str, order: Order) -> None:
    Notify(gateways)()
    assert shown(work(order)) == PAID
    assert charges(gateways, name) == 1
    assert payable(gateways, name) == 0
    assert held_for(order) == []
    assert list(check_money()) == []


@matrix
def test_opening_a_page(name: str, fault: str, trouble: Trouble, gateways: Simulator) -> None:
    order = an_order(name)

    with trouble(name, fault):
        refused = pay(order, key="k")
        again = pay(order, key="k")
        assert (refused.status_code, again.status_code) == (503, 503)
        assert refused.json()["type"].endswith("gateway-unavailable")

    opened = pay(order, key="k")
    assert opened.status_code == 201, opened.content
    assert pay(order, key="k").json() == opened.json()
    assert Payment.objects.filter(order=order).count() == 1
    assert payable(gateways, name) == 1
    buyer_pays(gateways, order)
    assert_paid_once(gateways, name, order)


@matrix
def test_asking_for_a_state(name: str, fault: str, trouble: Trouble, gateways: Simulator) -> None:
    order = an_order(name)
    pay(order)
    buyer_pays(gateways, order)
    notify = Notify(gateways)

    with trouble(name, fault):
        notify()
        put_off(order)
        assert shown(order) == UNPAID

    assert_paid_once(gateways, name, order)


def put_off(order: Order) -> None:
    """A worker gets what is reported of the order, and nothing follows from it yet."""
    events = OutboxEvent.objects.filter(order_id=str(order.pk), event_type="payment.reported")
    assert events.exists()
    for event in events:
        outcome = process(event.payload, receive_count=1, worker="worker-1")
        assert outcome in ("put off", "in progress"), outcome
    order.refresh_from_db()


@matrix
def test_closing_a_page(name: str, fault: str, trouble: Trouble, gateways: Simulator) -> None:
    order = an_order(name)
    first = pay(order, payment_method="qris")
    assert first.status_code == 201

    with trouble(name, fault):
        assert pay(order, payment_method="card").status_code == 503
        assert Payment.objects.filter(order=order).count() == 1

    second = pay(order, payment_method="card")
    assert second.status_code == 201, second.content
    assert second.json()["redirect_url"] != first.json()["redirect_url"]
    assert payable(gateways, name) == 1
    pay_by_card(gateways, order)
    assert_paid_once(gateways, name, order)


def pay_by_card(gateways: Simulator, order: Order) -> None:
    if order.payment_method == "midtrans":
        buyer(gateways, order, "pick", method="credit_card")
    else:
        buyer(gateways, order, "pay", channel="CREDIT_CARD")


@matrix
def test_giving_money_back(name: str, fault: str, trouble: Trouble, gateways: Simulator) -> None:
    people = [get_user_model().objects.create(username=one) for one in ("ayu", "budi")]
    order = paid(gateways, name)
    request = decide(order, 50_000, *people)

    with trouble(name, fault):
        send(gateways)
        request.refresh_from_db()
        assert request.status == "decided"

    send(gateways)
    request.refresh_from_db()
    assert request.status == "done"
    assert at_the_gateway(gateways, name) == 50_000
    assert (work(order).status, order.refunded_rupiah) == ("partly_refunded", 50_000)
    assert (PaymentRefund.objects.count(), RefundRequest.objects.count()) == (1, 1)
    assert held_for(order) == []
    assert list(check_money()) == []


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("fault", ["away", "never answers", "500"])
def test_others_buy_while_a_gateway_is_in_trouble(
    name: str, fault: str, trouble: Trouble, gateways: Simulator
) -> None:
    waiting = an_order(name)
    with trouble(name, fault):
        assert pay(waiting).status_code == 503
        trouble.settings.GATEWAY_READ_SECONDS = PATIENCE  # for the other one, which answers
        buys(gateways, name)
    assert shown(waiting) == UNPAID
    assert pay(waiting).status_code == 201


@pytest.mark.parametrize("end", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "soon", 7])
def test_a_page_whose_end_cannot_be_is_opened_all_the_same(
    end: object, gateways: Simulator, settings: LazySettings
) -> None:
    with FaultProxy(gateways.url) as proxy:
        settings.XENDIT_API_URL = settings.XENDIT_API_URL.replace(gateways.url, proxy.url)
        proxy.inject(DoesAndSays({"expiry_date": end}), times=1)
        order = an_order("xendit")

        assert pay(order).status_code == 201

    assert Payment.objects.get(order=order).expires_at is not None
