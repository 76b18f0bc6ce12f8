"""Pay: a page that can be paid on, one at a time, whatever the gateway answers."""

from datetime import timedelta
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from orders.models import Order
from payments import paying, reconciliation
from payments.apply import apply_by_event
from payments.asking_times import AFTER_PAYING
from payments.attempts import MOST_ATTEMPTS
from payments.confirmation import Asked
from payments.expiry import expire_unpaid_orders
from payments.locks import lock_payment
from payments.models import Payment
from payments.providers.http import wait_asked_for
from payments.reconciliation import Found, sweep
from payments.status import PaymentStatus
from skincare.local.deadline import wait_until
from skincare.local.gateways.actions import act_on_invoice, act_on_snap
from skincare.local.gateways.simulator import Simulator
from tests.faults.faults import CutAnswer, Garbage, LostAnswer, Status
from tests.faults.proxy import FaultProxy
from tests.integration.orders.together import somebody_waits_for_a_lock
from tests.integration.payments.gateways import an_order
from tests.integration.payments.test_confirmation import PAID, UNPAID, midtrans_says, shown, work

pytestmark = pytest.mark.django_db

both = pytest.mark.parametrize("name", ["midtrans", "xendit"])


def pay(order: Order, *, key: str | None = None, **body: str) -> Any:
    return Client().post(
        f"/v1/orders/{order.pk}/payments",
        data=body,
        content_type="application/json",
        headers={"Idempotency-Key": key or str(uuid4())},
    )


def buyer(gateways: Simulator, order: Order, action: str, **values: str) -> None:
    """The buyer, or a bank, does something on the order's newest page."""
    payment = Payment.objects.filter(order=order).exclude(session_id="").latest("number")
    if payment.provider == "midtrans":
        session = gateways.midtrans.sessions[payment.session_id]
        act_on_snap(gateways.midtrans, session, action, values)
    else:
        invoice = gateways.xendit.invoices[payment.session_id]
        act_on_invoice(gateways.xendit, invoice, action, values)


def buyer_pays(gateways: Simulator, order: Order) -> None:
    if order.payment_method == "midtrans":
        buyer(gateways, order, "pick", method="qris")
    buyer(gateways, order, "pay")


def pages(gateways: Simulator, name: str) -> int:
    return len(gateways.midtrans.sessions if name == "midtrans" else gateways.xendit.invoices)


def charges(gateways: Simulator, name: str) -> int:
    return len(gateways.midtrans.charges if name == "midtrans" else gateways.xendit.charges)


def later(gateways: Simulator, seconds: float) -> None:
    """Let time go by: at the gateways, and in what the shop has written down, which gets older."""
    gateways.clock.shows_real_time = True
    gateways.advance(seconds)
    moved = {
        "payments_payment": ("created_at", "expires_at", "asked_at", "next_ask_at", "paid_at"),
        "payments_refundrequest": ("next_try_at",),
        "orders_order": ("created_at", "expires_at"),
    }
    with connection.cursor() as cursor:
        for table, columns in moved.items():
            sets = ", ".join(f"{one} = {one} - %s" for one in columns)
            shifts = [timedelta(seconds=seconds)] * len(columns)
            cursor.execute(f"UPDATE {table} SET {sets}", shifts)  # noqa: S608 our own names


@both
def test_a_page_is_opened_and_the_same_one_again(name: str, gateways: Simulator) -> None:
    order = an_order(name)

    first, again = pay(order), pay(order)

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    payment = Payment.objects.get(order=order)
    answer = first.json()
    assert answer["payment_id"] == str(payment.pk)
    assert answer["redirect_url"].startswith(gateways.url)
    assert (answer["provider"], answer["status"]) == (name, "pending")
    assert payment.reference == f"{order.pk}-1"
    assert pages(gateways, name) == 1
    shown_order = Client().get(f"/v1/orders/{order.pk}").json()
    assert [one["redirect_url"] for one in shown_order["payments"]] == [answer["redirect_url"]]
    assert shown_order["pay_until"][:16] == answer["expires_at"][:16]


@pytest.mark.parametrize("body", ["", "{}", "null", '{"payment_method": ""}'])
def test_a_page_needs_no_body(body: str, gateways: Simulator) -> None:
    order = an_order("midtrans")
    answer = Client().post(
        f"/v1/orders/{order.pk}/payments",
        data=body,
        content_type="application/json",
        headers={"Idempotency-Key": "k"},
    )
    assert answer.status_code == 201, answer.content
    # What says the same is no other body.
    assert pay(order, key="k").status_code == 200


def test_a_key_gets_the_same_page_and_no_other_body(gateways: Simulator) -> None:
    order = an_order("midtrans")
    first = pay(order, key="k")
    assert pay(order, key="k").json() == first.json()
    assert pay(order, key="k", payment_method="qris").status_code == 409
    assert pay(order, key=" ").status_code == 400


@both
def test_the_way_to_pay_says_how_long_the_order_waits(name: str, gateways: Simulator) -> None:
    order = an_order(name)
    pay(order, payment_method="qris")
    order.refresh_from_db()
    payment = Payment.objects.get(order=order)
    assert payment.expires_at is not None
    waits = payment.expires_at - payment.updated_at
    assert timedelta(minutes=14) < waits < timedelta(minutes=16)
    assert order.expires_at == payment.expires_at


@both
def test_another_way_closes_the_page_before(name: str, gateways: Simulator) -> None:
    order = an_order(name)
    pay(order, payment_method="qris")

    other = pay(order, payment_method="virtual_account")

    assert other.status_code == 201
    statuses = Payment.objects.filter(order=order).order_by("number")
    assert list(statuses.values_list("number", "status"))[1] == (2, "pending")
    assert statuses[0].status in ("cancelled", "expired")
    first = Payment.objects.get(order=order, number=1)
    if name == "midtrans":
        session = gateways.midtrans.sessions[first.session_id]
        assert not gateways.midtrans.page_is_open(session)
    else:
        assert gateways.xendit.invoices[first.session_id].status == "EXPIRED"


@both
def test_what_turns_out_to_be_paid_is_taken_and_not_replaced(
    name: str, gateways: Simulator
) -> None:
    order = an_order(name)
    pay(order)
    buyer_pays(gateways, order)

    answer = pay(order, payment_method="virtual_account")

    assert answer.status_code == 409
    assert answer.json()["type"].endswith("order-not-payable")
    assert shown(work(order)) == PAID
    assert pages(gateways, name) == 1


@pytest.mark.django_db(transaction=True)
def test_money_that_comes_while_its_page_is_being_closed_is_taken(
    gateways: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = an_order("midtrans")
    pay(order)
    asked, locked = paying.ask_now, Event()

    def settle(payment: Payment) -> None:
        with transaction.atomic():
            found = lock_payment(payment.pk)
            locked.set()
            wait_until(somebody_waits_for_a_lock, seconds=20, what="the request to meet the lock")
            apply_by_event(found, PaymentStatus.SETTLED, occurred_at=timezone.now())
        connection.close()

    def ask_and_settle(payment: Payment, *, is_closed: bool) -> Found:
        found = asked(payment, is_closed=is_closed)
        webhook.start()
        locked.wait(20)
        return found

    webhook = Thread(target=settle, args=[Payment.objects.get(order=order)])
    monkeypatch.setattr(paying, "ask_now", ask_and_settle)

    answer = pay(order, payment_method="virtual_account")

    webhook.join()
    assert answer.status_code == 409
    assert answer.json()["type"].endswith("order-not-payable")
    assert Payment.objects.get(order=order).status == "settled"


def test_a_page_with_a_declined_card_is_not_replaced(gateways: Simulator) -> None:
    order = an_order("midtrans")
    pay(order)
    buyer(gateways, order, "pick", method="credit_card", card="4911111111111113")

    answer = pay(order, payment_method="qris")

    assert (answer.status_code, answer.json()["type"].split(":")[-1]) == (409, "payment-still-open")
    assert pages(gateways, "midtrans") == 1


@pytest.mark.parametrize("wanted", ["paypal", "sandbox", "free"])
def test_what_has_no_page_is_refused(wanted: str, gateways: Simulator) -> None:
    assert pay(an_order("midtrans"), payment_method=wanted).status_code == 422


def test_an_order_that_is_paid_or_unknown_has_no_page(gateways: Simulator) -> None:
    assert pay(work(an_order("sandbox"))).status_code == 409
    assert pay(Order(pk=uuid4())).status_code == 404


FAULTS: dict[str, Any] = {
    "500": Status(500),
    "429": Status(429),
    "garbage": Garbage(),
    "a lost answer": LostAnswer(),
    "an answer that is cut off": CutAnswer(),
}


@pytest.mark.parametrize("fault", FAULTS)
@both
def test_a_gateway_that_does_not_answer_costs_no_attempt_and_makes_no_second_page(
    name: str, fault: str, gateways: Simulator, settings: LazySettings
) -> None:
    # given
    order = an_order(name)
    with FaultProxy(gateways.url) as proxy:
        for setting in ("MIDTRANS_SNAP_URL", "XENDIT_API_URL"):
            url = getattr(settings, setting).replace(gateways.url, proxy.url)
            setattr(settings, setting, url)
        proxy.inject(FAULTS[fault], times=1)
        # when
        refused, opened = pay(order, key="k"), pay(order, key="k")
    # then
    assert refused.status_code == 503
    assert int(refused["Retry-After"]) > 0
    assert opened.status_code == 201
    assert Payment.objects.filter(order=order).count() == 1
    if name == "midtrans":
        open_pages = [
            one
            for one in gateways.midtrans.sessions.values()
            if gateways.midtrans.page_is_open(one)
        ]
        assert len(open_pages) == 1
    else:
        assert len(gateways.xendit.invoices) == 1
    buyer_pays(gateways, order)
    assert charges(gateways, name) == 1


@both
def test_a_wrong_key_says_that_trying_again_does_not_help(
    name: str, gateways: Simulator, settings: LazySettings
) -> None:
    settings.MIDTRANS_SERVER_KEY = settings.XENDIT_SECRET_KEY = "somebody else's"
    answer = pay(an_order(name))
    assert (answer.status_code, answer.json()["type"].split(":")[-1]) == (502, "gateway-refused")


def test_a_payment_that_breaks_something_does_not_keep_the_others_from_being_asked_for(
    gateways: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, other = an_order("midtrans"), an_order("xendit")
    for order in (broken, other):
        pay(order)
        buyer_pays(gateways, order)
    asked = reconciliation.ask

    def ask(payment: Payment) -> Asked:
        if payment.order_id == broken.pk:
            raise ZeroDivisionError
        return asked(payment)

    monkeypatch.setattr(reconciliation, "ask", ask)
    later(gateways, 3600)

    sweep()

    assert shown(work(other)) == PAID
    assert shown(work(broken)) == UNPAID
    # It is asked for again.
    monkeypatch.undo()
    later(gateways, 3600)
    sweep()
    assert shown(work(broken)) == PAID


@pytest.mark.parametrize(
    ("header", "waits"),
    [
        ("30", 30),
        ("0.5", 0.5),
        ("-1", 0),
        ("1e9", 3600),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("", None),
    ],
)
def test_a_gateway_says_how_long_to_wait_in_a_form_that_can_be_waited_for(
    header: str, waits: float | None
) -> None:
    assert wait_asked_for({"Retry-After": header}) == waits


@both
def test_with_every_webhook_lost_a_paid_order_ends_paid(name: str, gateways: Simulator) -> None:
    order = an_order(name)
    pay(order)
    buyer_pays(gateways, order)
    assert shown(work(order)) == UNPAID

    later(gateways, 121)
    sweep()

    assert shown(work(order)) == PAID
    # Once more soon, because it may be reversed, and for the last time after two days.
    payment = Payment.objects.get(order=order)
    assert payment.paid_at is not None
    assert payment.next_ask_at == payment.paid_at + AFTER_PAYING
    later(gateways, 700)
    sweep()
    later(gateways, 73 * 3600)
    sweep()
    payment.refresh_from_db()
    assert (payment.next_ask_at, shown(work(order))) == (None, PAID)


def test_a_reversal_whose_webhook_is_lost_is_found(gateways: Simulator) -> None:
    order = an_order("midtrans")
    pay(order)
    buyer(gateways, order, "pick", method="permata_va")
    buyer(gateways, order, "pay")
    later(gateways, 121)
    sweep()
    assert shown(work(order)) == PAID
    buyer(gateways, order, "reverse")

    later(gateways, 601)
    sweep()

    assert shown(work(order)) != PAID
    assert Payment.objects.get(order=order).status == "denied"


@both
def test_with_every_webhook_lost_an_order_that_nobody_paid_ends_after_its_page(
    name: str, gateways: Simulator
) -> None:
    order = an_order(name)
    pay(order, payment_method="qris")

    for _ in range(20):
        later(gateways, 60)
        sweep()
        expire_unpaid_orders()
        if work(order).status != "pending":
            break

    assert shown(order) == ("expired", 0, 0)


@both
def test_no_order_expires_while_its_gateway_cannot_be_asked(
    name: str, gateways: Simulator, settings: LazySettings
) -> None:
    order = an_order(name)
    pay(order, payment_method="qris")
    buyer_pays(gateways, order)
    urls = settings.MIDTRANS_API_URL, settings.XENDIT_API_URL
    settings.MIDTRANS_API_URL = settings.XENDIT_API_URL = "http://127.0.0.1:9"

    for _ in range(4):
        later(gateways, 600)
        sweep()
        expire_unpaid_orders()
    assert shown(work(order)) == UNPAID

    settings.MIDTRANS_API_URL, settings.XENDIT_API_URL = urls
    later(gateways, 600)
    sweep()
    assert shown(work(order)) == PAID


@both
def test_late_money_is_found_by_asking_once_more(name: str, gateways: Simulator) -> None:
    order = an_order(name)
    pay(order, payment_method="qris")
    if name == "midtrans":
        buyer(gateways, order, "pick", method="qris")
    for _ in range(20):
        later(gateways, 60)
        sweep()
        expire_unpaid_orders()
    assert work(order).status == "expired"

    later(gateways, 3600)
    buyer(gateways, order, "pay late")
    later(gateways, 48 * 3600)
    sweep()

    assert shown(work(order)) == PAID


def test_a_second_card_whose_webhook_is_lost_is_found(gateways: Simulator) -> None:
    order = an_order("midtrans")
    pay(order)
    for card in ("4911111111111113", "4811111111111114"):
        buyer(gateways, order, "pick", method="credit_card", card=card)

    for _ in range(2):
        later(gateways, 601)
        sweep()

    assert shown(work(order)) == PAID
    assert gateways.midtrans.charges == [f"{order.pk}-1"]


def test_money_that_is_too_much_since_other_money_was_found_is_shown_as_held(
    gateways: Simulator,
) -> None:
    order = an_order("midtrans")
    pay(order)
    buyer(gateways, order, "pick", method="qris")
    [first] = gateways.midtrans.transactions
    first.state = "deny"  # the page takes another way to pay
    buyer(gateways, order, "pick", method="credit_card", card="4811111111111114")
    first.state = "pending"
    later(gateways, 60)
    gateways.midtrans.become(first, "settlement")
    midtrans_says(gateways.webhooks.all[-1].document)  # of the card, nobody told
    work(order)

    later(gateways, 601)
    sweep()

    held = Payment.objects.exclude(held_reason="")
    assert list(held.values_list("transaction_id", flat=True)) == [first.id]


def test_an_order_has_no_page_without_end(gateways: Simulator) -> None:
    order = an_order("midtrans")
    attempt = Payment.objects.filter(order=order)
    attempt.update(number=MOST_ATTEMPTS, reference=f"{order.pk}-{MOST_ATTEMPTS}")
    assert pay(order).status_code == 201
    attempt.update(status="cancelled")

    answer = pay(order)

    assert answer.status_code == 409
    assert answer.json()["type"].endswith("order-not-payable")
    assert len(gateways.midtrans.sessions) == 1
