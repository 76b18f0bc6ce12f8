"""Money back: two persons, one refund, once; and by hand where the gateway has none."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from orders.locks import lock_order
from orders.models import Order
from payments import refund_sending
from payments.alignment import align
from payments.decisions import accept_request, dismiss, request_decision
from payments.exceptions import AlreadyRequested, CannotDecide, NotRequested, SamePerson
from payments.hold_codes import Decision
from payments.models import Hold, Payment, PaymentRefund, RefundRequest
from payments.providers.base import RefundState
from payments.reconciliation import sweep
from payments.refund_sending import send_due
from payments.refunding import agree_to_refund, request_refund, withdraw_refund
from payments.transfers import confirm_transfer, tell_transfer
from skincare.local.gateways.simulator import Simulator
from tests.faults.faults import Forward, LostAnswer, Status
from tests.faults.proxy import FaultProxy
from tests.faults.wire import Answer, Request
from tests.integration.payments.gateways import TOTAL, an_order
from tests.integration.payments.test_confirmation import held_for, midtrans_says, work, xendit_says
from tests.integration.payments.test_paying import buyer, pay

pytestmark = pytest.mark.django_db

both = pytest.mark.parametrize("name", ["midtrans", "xendit"])


@pytest.fixture
def ayu() -> Any:
    return get_user_model().objects.create(username="ayu")


@pytest.fixture
def budi() -> Any:
    return get_user_model().objects.create(username="budi")


def paid(gateways: Simulator, name: str, *, method: str = "qris", channel: str = "QRIS") -> Order:
    """An order that was paid on its page, as the shop knows it."""
    order = an_order(name)
    pay(order)
    if name == "midtrans":
        buyer(gateways, order, "pick", method=method)
        if method != "credit_card":  # which is captured at once
            buyer(gateways, order, "pay")
        midtrans_says(gateways.webhooks.all[-1].document)
    else:
        buyer(gateways, order, "pay", channel=channel)
        xendit_says(gateways.webhooks.all[-1].document)
    assert work(order).status == "paid"
    return order


def decide(order: Order, amount: int, ayu: Any, budi: Any) -> RefundRequest:
    payment = Payment.objects.get(order=order)
    request = request_refund(
        payment_id=payment.pk, amount_rupiah=amount, reason="returned", actor=ayu.username
    )
    return agree_to_refund(request_id=request.pk, actor=budi.username)


def send(gateways: Simulator) -> None:
    """The relay sends what is due; Xendit needs a minute, and is asked again then."""
    for _ in range(3):
        RefundRequest.objects.filter(next_try_at__isnull=False).update(next_try_at=timezone.now())
        send_due()
        gateways.advance(61)


def at_the_gateway(gateways: Simulator, name: str) -> int:
    """The rupiah that the gateway has given back."""
    if name == "midtrans":
        return sum(one.refunded for one in gateways.midtrans.transactions)
    refunds = gateways.xendit.refunds.values()
    return int(sum(one.amount for one in refunds if one.status == "SUCCEEDED"))


@pytest.mark.parametrize(("amount", "status"), [(50_000, "partly_refunded"), (TOTAL, "refunded")])
@both
def test_two_persons_give_money_back(
    name: str, amount: int, status: str, gateways: Simulator, ayu: Any, budi: Any
) -> None:
    order = paid(gateways, name)

    request = decide(order, amount, ayu, budi)
    send(gateways)
    # Its webhooks, and asking once more, add nothing.
    for call in gateways.webhooks.all:
        (midtrans_says if name == "midtrans" else xendit_says)(call.document)
    sweep()
    work(order)

    request.refresh_from_db()
    assert request.status == "done"
    assert (order.status, order.refunded_rupiah) == (status, amount)
    assert at_the_gateway(gateways, name) == amount
    assert PaymentRefund.objects.count() == 1
    assert held_for(order) == []


@pytest.mark.parametrize("fault", [LostAnswer(), Status(500)])
@both
def test_an_answer_that_is_lost_gives_nothing_back_twice(
    name: str,
    fault: Any,
    gateways: Simulator,
    settings: LazySettings,
    ayu: Any,
    budi: Any,
) -> None:
    order = paid(gateways, name)
    decide(order, 50_000, ayu, budi)
    with FaultProxy(gateways.url) as proxy:
        for setting in ("MIDTRANS_API_URL", "XENDIT_API_URL"):
            url = getattr(settings, setting).replace(gateways.url, proxy.url)
            setattr(settings, setting, url)
        proxy.inject(fault, times=1)
        send(gateways)
    work(order)

    assert at_the_gateway(gateways, name) == 50_000
    assert (order.status, order.refunded_rupiah) == ("partly_refunded", 50_000)


def test_a_refund_that_breaks_something_does_not_keep_the_others_waiting(
    gateways: Simulator, ayu: Any, budi: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, other = (decide(paid(gateways, "midtrans"), 50_000, ayu, budi) for _ in range(2))
    ask = refund_sending._ask

    def fails_once(request: RefundRequest, payment: Payment) -> RefundState:
        if request.pk == broken.pk and not request.tries:
            raise ZeroDivisionError
        return ask(request, payment)

    monkeypatch.setattr(refund_sending, "_ask", fails_once)

    assert send_due() == 1
    other.refresh_from_db()
    assert other.status == "done"

    send(gateways)
    broken.refresh_from_db()
    assert broken.status == "done"
    assert at_the_gateway(gateways, "midtrans") == 100_000


def test_who_asks_cannot_agree_and_one_refund_is_under_way_at_a_time(
    gateways: Simulator, ayu: Any, budi: Any
) -> None:
    payment = Payment.objects.get(order=paid(gateways, "midtrans"))
    ask = {"payment_id": payment.pk, "reason": "r", "actor": ayu.username}
    request = request_refund(amount_rupiah=1000, **ask)

    with pytest.raises(SamePerson):
        agree_to_refund(request_id=request.pk, actor=ayu.username)
    with pytest.raises(AlreadyRequested):
        request_refund(amount_rupiah=2000, **ask)
    withdraw_refund(request_id=request.pk, reason="a mistake", actor=ayu.username)
    with pytest.raises(NotRequested):
        agree_to_refund(request_id=request.pk, actor=budi.username)
    for amount in (0, TOTAL + 1):
        with pytest.raises(CannotDecide):
            request_refund(amount_rupiah=amount, **ask)
    send(gateways)
    assert at_the_gateway(gateways, "midtrans") == 0


@pytest.mark.parametrize(
    ("name", "way"), [("midtrans", {"method": "bca_va"}), ("xendit", {"channel": "BCA"})]
)
def test_a_virtual_account_is_held_until_somebody_has_transferred_the_money(
    name: str, way: dict[str, str], gateways: Simulator, ayu: Any, budi: Any
) -> None:
    order = paid(gateways, name, **way)
    request = decide(order, TOTAL, ayu, budi)
    send(gateways)
    request.refresh_from_db()
    assert (request.status, held_for(work(order))) == ("by_hand", ["transfer_by_hand"])

    with pytest.raises(NotRequested):
        confirm_transfer(request_id=request.pk, actor=budi.username)
    tell_transfer(request_id=request.pk, reason="bank transfer 4711", actor=ayu.username)
    with pytest.raises(SamePerson):
        confirm_transfer(request_id=request.pk, actor=ayu.username)
    assert held_for(work(order)) == ["transfer_by_hand"]
    confirm_transfer(request_id=request.pk, actor=budi.username)

    work(order)
    assert (order.status, order.refunded_rupiah, held_for(order)) == ("refunded", TOTAL, [])
    assert PaymentRefund.objects.get().kind == "by_hand"


def test_a_gateway_that_refunds_what_was_transferred_by_hand_is_noticed(
    gateways: Simulator, ayu: Any, budi: Any
) -> None:
    order = paid(gateways, "midtrans", method="bca_va")
    request = decide(order, 50_000, ayu, budi)
    send(gateways)
    tell_transfer(request_id=request.pk, reason="bank transfer 4711", actor=ayu.username)
    confirm_transfer(request_id=request.pk, actor=budi.username)

    [transaction] = gateways.midtrans.transactions
    gateways.midtrans._add_refund(transaction, 50_000, key=request.key, reason="r")
    gateways.midtrans.become(transaction, "partial_refund")
    midtrans_says(gateways.webhooks.all[-1].document)

    assert work(order).refunded_rupiah == 100_000


def test_a_refund_that_fails_at_the_gateway_is_a_persons_case(
    gateways: Simulator, ayu: Any, budi: Any
) -> None:
    gateways.xendit.options.refund_fails = "INSUFFICIENT_BALANCE"
    order = paid(gateways, "xendit")
    request = decide(order, TOTAL, ayu, budi)
    send(gateways)
    request.refresh_from_db()
    assert (request.status, request.last_error) == ("failed", "INSUFFICIENT_BALANCE")
    assert (work(order).status, held_for(order)) == ("paid", ["transfer_by_hand"])


def test_a_refund_that_failed_is_tried_again_or_transferred_by_hand(
    gateways: Simulator, ayu: Any, budi: Any
) -> None:
    gateways.xendit.options.refund_fails = "INSUFFICIENT_BALANCE"
    order = paid(gateways, "xendit")
    failed = decide(order, 50_000, ayu, budi)
    send(gateways)
    # Another try, which fails too, and then by hand.
    again = decide(order, 50_000, ayu, budi)
    with pytest.raises(AlreadyRequested):
        tell_transfer(request_id=failed.pk, reason="4711", actor=ayu.username)
    send(gateways)
    tell_transfer(request_id=again.pk, reason="4711", actor=ayu.username)
    confirm_transfer(request_id=again.pk, actor=budi.username)

    assert work(order).refunded_rupiah == 50_000
    assert held_for(order) == []
    assert at_the_gateway(gateways, "xendit") == 0


def test_a_hold_that_is_dismissed_leaves_no_transfer_open(
    gateways: Simulator, ayu: Any, budi: Any
) -> None:
    order = paid(gateways, "midtrans", method="bca_va")
    request = decide(order, TOTAL, ayu, budi)
    send(gateways)

    dismiss(
        hold_id=Hold.objects.get(order=order).pk, reason="she keeps the goods", actor=ayu.username
    )

    request.refresh_from_db()
    assert (request.status, request.last_error) == ("withdrawn", "its hold was closed: dismiss")
    assert (work(order).status, held_for(order)) == ("paid", [])
    for step in (tell_transfer, confirm_transfer):
        with pytest.raises(NotRequested):
            step(
                request_id=request.pk,
                actor=budi.username,
                **({"reason": "r"} if step is tell_transfer else {}),
            )  # type: ignore[operator]
    # The way is free for another one.
    assert decide(order, 1000, ayu, budi).status == "decided"


def test_a_refund_of_a_hold_that_comes_to_nothing_can_be_decided_again(
    gateways: Simulator, ayu: Any, budi: Any
) -> None:
    gateways.xendit.options.refund_fails = "INSUFFICIENT_BALANCE"
    order = paid(gateways, "xendit")
    order.cancelled_at = timezone.now()
    order.save()
    with transaction.atomic():
        align(lock_order(order.pk), event_id="cancelled", reason="r")
    [code] = held_for(order)
    hold = Hold.objects.get(order=order, code=code)
    request_decision(hold_id=hold.pk, decision=Decision.REFUND, reason="r", actor=ayu.username)
    accept_request(hold_id=hold.pk, actor=budi.username)
    send(gateways)
    assert held_for(order) == [code, "transfer_by_hand"]

    gateways.xendit.options.refund_fails = ""
    request_decision(hold_id=hold.pk, decision=Decision.REFUND, reason="again", actor=ayu.username)
    accept_request(hold_id=hold.pk, actor=budi.username)
    send(gateways)

    assert (work(order).status, order.refunded_rupiah, held_for(order)) == ("refunded", TOTAL, [])
    assert at_the_gateway(gateways, "xendit") == TOTAL


def test_one_transfer_by_hand_is_under_way_at_a_time(
    gateways: Simulator, ayu: Any, budi: Any
) -> None:
    order = paid(gateways, "midtrans", method="bca_va")
    decide(order, 100_000, ayu, budi)
    send(gateways)

    with pytest.raises(AlreadyRequested):
        decide(order, 100_000, ayu, budi)


@both
def test_partial_refunds_in_two_steps_add_up(
    name: str, gateways: Simulator, ayu: Any, budi: Any
) -> None:
    order = paid(gateways, name)
    for amount in (50_000, TOTAL - 50_000):
        decide(order, amount, ayu, budi)
        send(gateways)
    before = gateways.webhooks.all
    for call in [*before, *reversed(before)]:
        (midtrans_says if name == "midtrans" else xendit_says)(call.document)

    assert (work(order).status, order.refunded_rupiah) == ("refunded", TOTAL)
    assert at_the_gateway(gateways, name) == TOTAL
    assert [one.amount_rupiah for one in PaymentRefund.objects.order_by("id")] == [50_000, 100_000]
    assert held_for(order) == []


def test_a_card_that_is_captured_is_refunded_once_it_is_settled(
    gateways: Simulator, ayu: Any, budi: Any
) -> None:
    order = paid(gateways, "midtrans", method="credit_card")
    request = decide(order, 50_000, ayu, budi)
    send(gateways)
    request.refresh_from_db()
    assert (request.status, request.last_error) == ("decided", "midtrans: it is not settled yet")
    assert held_for(order) == []

    gateways.advance(24 * 3600)
    send(gateways)

    assert (work(order).status, order.refunded_rupiah) == ("partly_refunded", 50_000)
    assert at_the_gateway(gateways, "midtrans") == 50_000


@pytest.mark.parametrize(
    ("status", "code", "ends_as"),
    [
        (403, "REFUND_NOT_SUPPORTED", "by_hand"),
        (403, "PARTIAL_REFUND_NOT_SUPPORTED", "by_hand"),
        (403, "REQUEST_FORBIDDEN_ERROR", "failed"),
        (400, "INSUFFICIENT_BALANCE", "failed"),
        (400, "REFUND_IN_PROGRESS", "done"),
        (400, "TEMPORARILY_UNAVAILABLE", "done"),
        (409, "DUPLICATE_ERROR", "done"),
        (409, "IDEMPOTENCY_ERROR", "done"),
        (503, "CHANNEL_UNAVAILABLE", "done"),
    ],
)
def test_each_refusal_of_xendit_leads_to_its_own_end(
    status: int,
    code: str,
    ends_as: str,
    gateways: Simulator,
    settings: LazySettings,
    ayu: Any,
    budi: Any,
) -> None:
    order = paid(gateways, "xendit")
    request = decide(order, 50_000, ayu, budi)
    with FaultProxy(gateways.url) as proxy:
        settings.XENDIT_API_URL = settings.XENDIT_API_URL.replace(gateways.url, proxy.url)
        proxy.inject(Says(status, {"error_code": code, "message": "…"}), times=1)
        send(gateways)
        send(gateways)

    request.refresh_from_db()
    assert request.status == ends_as
    assert at_the_gateway(gateways, "xendit") == (50_000 if ends_as == "done" else 0)


@both
def test_a_refund_whose_state_cannot_be_read_is_not_taken_for_failed(
    name: str, gateways: Simulator, settings: LazySettings, ayu: Any, budi: Any
) -> None:
    order = paid(gateways, name)
    request = decide(order, 50_000, ayu, budi)
    keys = settings.MIDTRANS_SERVER_KEY, settings.XENDIT_SECRET_KEY
    with FaultProxy(gateways.url) as proxy:
        for setting in ("MIDTRANS_API_URL", "XENDIT_API_URL"):
            url = getattr(settings, setting).replace(gateways.url, proxy.url)
            setattr(settings, setting, url)
        proxy.inject(LostAnswer(), times=1)
        RefundRequest.objects.update(next_try_at=timezone.now())
        send_due()
        # Somebody changes the key meanwhile.
        settings.MIDTRANS_SERVER_KEY = settings.XENDIT_SECRET_KEY = "old"
        send(gateways)
        request.refresh_from_db()
        assert (request.status, held_for(order)) == ("decided", [])
        settings.MIDTRANS_SERVER_KEY, settings.XENDIT_SECRET_KEY = keys
        send(gateways)

    request.refresh_from_db()
    assert (request.status, at_the_gateway(gateways, name)) == ("done", 50_000)


@pytest.mark.parametrize("code", [200, "201", None])
def test_a_refund_that_midtrans_has_done_is_not_taken_for_failed_whatever_its_code(
    code: Any, gateways: Simulator, settings: LazySettings, ayu: Any, budi: Any
) -> None:
    order = paid(gateways, "midtrans")
    request = decide(order, 50_000, ayu, budi)
    with FaultProxy(gateways.url) as proxy:
        settings.MIDTRANS_API_URL = settings.MIDTRANS_API_URL.replace(gateways.url, proxy.url)
        proxy.inject(DoesAndSays({"status_code": code}), times=1)
        send(gateways)

    request.refresh_from_db()
    assert (request.status, at_the_gateway(gateways, "midtrans")) == ("done", 50_000)
    assert held_for(work(order)) == []


def test_a_refund_that_shows_itself_late_is_not_taken_for_failed(
    gateways: Simulator, settings: LazySettings, ayu: Any, budi: Any
) -> None:
    order = paid(gateways, "midtrans")
    request = decide(order, 50_000, ayu, budi)
    with FaultProxy(gateways.url) as proxy:
        settings.MIDTRANS_API_URL = settings.MIDTRANS_API_URL.replace(gateways.url, proxy.url)
        proxy.inject(Lags(), times=3)  # two questions for the state, and a refusal between them
        proxy.inject(LostAnswer(), times=1)
        send(gateways)

    request.refresh_from_db()
    assert (request.status, at_the_gateway(gateways, "midtrans")) == ("done", 50_000)
    assert held_for(work(order)) == []


@dataclass(frozen=True)
class Lags:
    """An answer of a gateway whose state does not show its refunds yet."""

    async def answer(self, request: Request, forward: Forward) -> Answer:
        done = await forward(request)
        document = json.loads(done.body)
        if document.pop("refunds", None):
            document["transaction_status"] = "settlement"
        return Answer.of(document, status=done.status)


@dataclass(frozen=True)
class DoesAndSays:
    """An answer of a gateway that does what was asked, with some of its fields changed."""

    changes: dict[str, Any]

    async def answer(self, request: Request, forward: Forward) -> Answer:
        done = await forward(request)
        return Answer.of(json.loads(done.body) | self.changes, status=done.status)


@dataclass(frozen=True)
class Says:
    """An answer of a gateway that does nothing."""

    status: int
    document: dict[str, str]

    async def answer(self, request: Request, forward: Forward) -> Answer:
        return Answer.of(self.document, status=self.status)
