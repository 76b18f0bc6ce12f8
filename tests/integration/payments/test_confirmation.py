"""The gateway's own word: a notification changes nothing until the gateway, asked, says it too."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings, settings
from django.db import transaction
from django.test import Client

from orders.models import Order
from payments.models import Hold, Payment, PaymentNotification, PaymentRefund
from payments.money_check import check_orders
from payments.reconciliation import sweep
from skincare.events.consumer import process
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.schema import IDENTITY_FIELDS
from skincare.local.gateways.actions import act_on_invoice, act_on_snap
from skincare.local.gateways.simulator import Simulator
from tests.integration.gateways.conftest import SERVER_KEY
from tests.integration.payments.gateways import TOTAL, an_order
from tests.unit.payments import midtrans_notifications

pytestmark = pytest.mark.django_db

#: What a paid order and an unpaid one show of themselves.
PAID, UNPAID = ("paid", 2, 0), ("pending", 0, 2)


def midtrans_shows(gateways: Simulator, order: Order, *steps: str) -> dict[str, Any]:
    """Bring a transaction of the order into a state at Midtrans; return the last notification."""
    payment = Payment.objects.get(order=order)
    details = {"order_id": payment.reference, "gross_amount": TOTAL}
    session = gateways.midtrans.create_session({"transaction_details": details}, notify_urls=[])
    method = "credit_card" if steps[:1] == ("capture",) else "permata_va"
    act_on_snap(gateways.midtrans, session, "pick", {"method": method})
    for step in steps[method == "credit_card" :]:
        if step.startswith("refund"):
            transaction = session.transactions[-1]
            transaction.method = gateways.midtrans.transactions[-1].method
            gateways.midtrans._add_refund(transaction, TOTAL, key="k", reason="r")
            gateways.midtrans.become(transaction, "refund")
        elif step == "cancel":
            gateways.midtrans.cancel(session.transactions[-1])
        else:
            act_on_snap(gateways.midtrans, session, step, {})
    document: dict[str, Any] = gateways.webhooks.all[-1].document
    return document


def xendit_shows(gateways: Simulator, order: Order, *steps: str) -> dict[str, Any]:
    """Bring an invoice of the order into a state at Xendit; return what its callback says."""
    payment = Payment.objects.get(order=order)
    invoice = gateways.xendit.create_invoice({"external_id": payment.reference, "amount": TOTAL})
    payment.session_id = invoice.id
    payment.save()
    for step in steps:
        act_on_invoice(gateways.xendit, invoice, step, {"channel": "QRIS"})
    return gateways.xendit.invoice_callback(invoice)


def midtrans_says(document: dict[str, Any], **changes: Any) -> None:
    answer = Client().post(
        "/v1/webhooks/midtrans",
        data=midtrans_notifications.body(document | changes, server_key=SERVER_KEY),
        content_type="application/json",
    )
    assert answer.status_code == 200, answer.content


def xendit_says(document: dict[str, Any]) -> None:
    answer = Client().post(
        "/v1/webhooks/xendit",
        data=json.dumps(document),
        content_type="application/json",
        headers={"x-callback-token": settings.XENDIT_CALLBACK_TOKEN},
    )
    assert answer.status_code == 200, answer.content


def work(order: Order) -> Order:
    """The worker processes all events of the order, and those that they lead to."""
    while True:
        done = ProcessedEvent.objects.filter(status="done").values("event_id")
        waiting = OutboxEvent.objects.filter(order_id=str(order.pk)).exclude(event_id__in=done)
        event = waiting.order_by("id").first()
        if event is None:
            break
        process(event.payload, receive_count=1, worker="worker-1")
    order.refresh_from_db()
    return order


def shown(order: Order) -> tuple[str, int, int]:
    """The order's state, and how many pieces are sold and reserved."""
    sums = {"stock": 0, "reserved": 0}
    for movement in order.movements.all():
        sums["stock"] += movement.stock_delta
        sums["reserved"] += movement.reserved_delta
    return order.status, -sums["stock"], sums["reserved"]


def held_for(order: Order) -> list[str]:
    holds = Hold.objects.filter(order=order, closed_at=None)
    return sorted(holds.values_list("code", flat=True))


def test_a_settlement_pays_when_midtrans_says_so_too(gateways: Simulator) -> None:
    order = an_order("midtrans")
    document = midtrans_shows(gateways, order, "pay")

    midtrans_says(document)
    before = shown(order)
    work(order)

    assert before == UNPAID
    assert shown(order) == PAID
    assert held_for(order) == []
    outcomes = PaymentNotification.objects.values_list("outcome", flat=True)
    assert set(outcomes) == {"applied"}


def test_an_invoice_pays_when_xendit_says_so_too(gateways: Simulator) -> None:
    order = an_order("xendit")

    xendit_says(xendit_shows(gateways, order, "pay"))
    before = shown(order)
    work(order)

    assert (before, shown(order)) == (UNPAID, PAID)
    assert Payment.objects.get(order=order).channel == "QRIS"
    assert held_for(order) == []


#: What Midtrans shows → the steps to it, and how the order then stands.
SEEN = {
    "pending": ((), UNPAID),
    "settlement": (("pay",), PAID),
    "capture": (("capture",), PAID),
    "deny": (("decline",), UNPAID),
    "expire": (("expire",), UNPAID),
    "cancel": (("cancel",), UNPAID),
    "reversal": (("pay", "reverse"), UNPAID),
    "refund": (("pay", "refund"), ("refunded", 0, 0)),
}
WORDS = [
    *("pending", "settlement", "capture", "authorize", "deny", "expire", "cancel", "failure"),
    *("refund", "partial_refund", "chargeback", "partial_chargeback", "something new"),
]
CODES = {"pending": "201", "authorize": "201", "deny": "202", "expire": "202", "cancel": "202"}


@pytest.mark.parametrize(
    "seen",
    [
        seen if seen in ("settlement", "cancel") else pytest.param(seen, marks=pytest.mark.slow)
        for seen in SEEN
    ],
)
def test_a_forged_status_under_a_valid_signature_changes_nothing(
    seen: str, gateways: Simulator
) -> None:
    """`order_id`, `status_code` and `gross_amount` are signed; whoever saw one can change the rest.

    The status code that goes with the forged word is taken from another notification of the order.
    """
    # given
    order = an_order("midtrans")
    steps, expected = SEEN[seen]
    document = midtrans_shows(gateways, order, *steps)
    midtrans_says(document)
    work(order)
    assert shown(order) == expected
    payment = Payment.objects.get(order=order)
    events = OutboxEvent.objects.exclude(event_type="payment.reported").count()
    refunds = PaymentRefund.objects.count()
    # when
    for word in WORDS:
        for transaction_id in (document["transaction_id"], str(uuid4())):
            forged = {
                "transaction_status": word,
                "status_code": CODES.get(word, "200"),
                "transaction_id": transaction_id,
                "refund_amount": f"{TOTAL}.00",
                "refund_key": "forged",
            }
            midtrans_says(document, **forged)
            work(order)
            # then
            assert (word, shown(order)) == (word, expected)
    assert OutboxEvent.objects.exclude(event_type="payment.reported").count() == events
    assert PaymentRefund.objects.count() == refunds
    status = payment.status
    payment.refresh_from_db()
    assert payment.status == status


@pytest.mark.parametrize("claim", ["PAID", "EXPIRED", "SETTLED", "SOMETHING"])
@pytest.mark.parametrize(
    ("steps", "expected"), [((), UNPAID), (("pay",), PAID), (("expire",), UNPAID)]
)
def test_a_forged_callback_with_a_leaked_token_changes_nothing(
    steps: tuple[str, ...], expected: tuple[str, int, int], claim: str, gateways: Simulator
) -> None:
    order = an_order("xendit")
    document = xendit_shows(gateways, order, *steps)
    if steps:
        xendit_says(document)
    work(order)
    assert shown(order) == expected

    xendit_says(document | {"status": claim, "paid_amount": TOTAL})
    work(order)

    assert shown(order) == expected


@pytest.mark.parametrize("steps", [(), ("pay",)])
def test_a_forged_refund_with_a_leaked_token_gives_nothing_back(
    steps: tuple[str, ...], gateways: Simulator
) -> None:
    order = an_order("xendit")
    document = xendit_shows(gateways, order, *steps)
    xendit_says(document)
    work(order)
    now = shown(order)

    xendit_says(
        {
            "event": "refund.succeeded",
            "business_id": "b",
            "created": datetime.now(UTC).isoformat(),
            "data": {
                "id": "rfd-forged",
                "invoice_id": document["id"],
                "payment_id": document.get("payment_id", "py-1"),
                "amount": TOTAL,
                "currency": "IDR",
                "status": "SUCCEEDED",
                "created": datetime.now(UTC).isoformat(),
            },
        }
    )
    work(order)

    assert shown(order) == now
    assert PaymentRefund.objects.count() == 0


def test_a_difference_is_recorded_and_held_until_a_person_has_looked(gateways: Simulator) -> None:
    order = an_order("midtrans")
    document = midtrans_shows(gateways, order)

    midtrans_says(document, transaction_status="settlement", status_code="200")
    work(order)

    hold = Hold.objects.get(order=order)
    assert (hold.code, hold.reason) == (
        "gateway_differs",
        "settled was notified; the gateway says: it is pending",
    )
    assert hold.notification is not None
    assert hold.notification.outcome == "held"
    assert order.is_held


def test_a_status_that_lags_behind_its_call_ends_its_own_hold(gateways: Simulator) -> None:
    # given
    order = an_order("midtrans")
    document = midtrans_shows(gateways, order)
    midtrans_says(document, transaction_status="settlement", status_code="200")
    work(order)
    assert held_for(order) == ["gateway_differs"]
    # when
    gateways.midtrans.become(gateways.midtrans.transactions[-1], "settlement")
    midtrans_says(gateways.webhooks.all[-1].document)
    sweep()
    work(order)
    # then
    assert (shown(order), held_for(order)) == (PAID, [])
    assert Hold.objects.get(order=order).closed_how == "resolved"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (("pay", "reverse"), UNPAID),
        (("pay", "refund"), ("refunded", 0, 0)),
        (("capture", "cancel"), UNPAID),
        (("capture", "settle", "charge back"), ("refunded", 0, 0)),
        (("capture", "settle"), PAID),
    ],
)
def test_what_was_true_when_it_was_notified_is_no_difference(
    steps: tuple[str, ...], expected: tuple[str, int, int], gateways: Simulator
) -> None:
    """The worker comes late: the money was in, and the gateway knows by now how it went on."""
    order = an_order("midtrans")
    midtrans_shows(gateways, order, *steps)
    told = [one.document for one in gateways.webhooks.all]

    for document in told:
        midtrans_says(document)
        if document["transaction_status"] in ("settlement", "capture"):
            break
    work(order)

    assert shown(order) == expected
    assert "gateway_differs" not in held_for(order)
    assert not PaymentNotification.objects.filter(outcome__in=["held", "waiting"]).exists()


def test_a_declined_card_is_no_reversal(gateways: Simulator) -> None:
    order = an_order("midtrans")
    document = midtrans_shows(gateways, order, "decline")

    midtrans_says(document, transaction_status="settlement", status_code="200")
    work(order)

    assert (shown(order), held_for(order)) == (UNPAID, ["gateway_differs"])


@pytest.mark.parametrize("without", [(), ("transaction_time", "settlement_time")])
@pytest.mark.parametrize("is_second", [False, True])
def test_a_notification_sent_again_to_a_restored_database_makes_the_same_event(
    is_second: bool, without: tuple[str, ...], gateways: Simulator
) -> None:
    order = an_order("midtrans")
    document = midtrans_shows(gateways, order, "pay")
    if is_second:
        midtrans_says(document)
        document = document | {"transaction_id": str(uuid4())}
    document = {name: value for name, value in document.items() if name not in without}

    def told() -> dict[str, Any]:
        before = transaction.savepoint()
        midtrans_says(document)
        event = OutboxEvent.objects.filter(event_type="payment.reported").latest("id")
        transaction.savepoint_rollback(before)
        return {name: event.payload[name] for name in IDENTITY_FIELDS}

    assert told() == told()


def test_a_refund_at_xendit_is_found_by_asking(gateways: Simulator) -> None:
    order = an_order("xendit")
    document = xendit_shows(gateways, order, "pay")
    xendit_says(document)
    work(order)

    gateways.xendit.refund({"invoice_id": document["id"], "reason": "OTHERS", "amount": 50_000})
    gateways.advance(61)
    xendit_says(gateways.webhooks.all[-1].document)
    work(order)

    assert (order.status, order.refunded_rupiah) == ("partly_refunded", 50_000)
    assert held_for(order) == []


def test_nothing_is_paid_on_hearsay_while_the_gateway_is_away(
    gateways: Simulator, settings: LazySettings
) -> None:
    order = an_order("midtrans")
    midtrans_says(midtrans_shows(gateways, order, "pay"))
    settings.MIDTRANS_API_URL = "http://127.0.0.1:9"
    event = OutboxEvent.objects.get(event_type="payment.reported")

    outcome = process(event.payload, receive_count=1, worker="worker-1")
    order.refresh_from_db()
    event.refresh_from_db()
    assert outcome == "put off"  # the message can go, and the outbox has the event again
    assert event.sent_at is None
    assert shown(order) == UNPAID

    settings.MIDTRANS_API_URL = gateways.midtrans_api_url
    assert shown(work(order)) == PAID


def bare_event(order: Order, event_type: str) -> dict[str, Any]:
    payment = Payment.objects.get(order=order)
    return {
        "event_id": f"warehouse:{uuid4()}",
        "event_type": event_type,
        "order_id": str(order.pk),
        "payment_id": str(payment.pk),
        "user_id": "guest",
        "amount_rupiah": TOTAL,
        "created_at": datetime.now(UTC).isoformat(),
    }


Shows = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(("name", "show"), [("midtrans", midtrans_shows), ("xendit", xendit_shows)])
def test_a_bare_event_of_another_producer_is_confirmed_the_same_way(
    name: str, show: Shows, gateways: Simulator
) -> None:
    order = an_order(name)
    show(gateways, order, "pay")

    process(bare_event(order, "payment.processed"), receive_count=1, worker="w")

    order.refresh_from_db()
    assert (shown(order), held_for(order)) == (PAID, [])
    assert not OutboxEvent.objects.filter(event_type="payment.processed").exists()


@pytest.mark.parametrize(("name", "show"), [("midtrans", midtrans_shows), ("xendit", xendit_shows)])
@pytest.mark.parametrize("event_type", ["payment.processed", "payment.failed"])
def test_a_bare_event_that_the_gateway_does_not_confirm_is_held(
    event_type: str, name: str, show: Shows, gateways: Simulator
) -> None:
    order = an_order(name)
    show(gateways, order)

    process(bare_event(order, event_type), receive_count=1, worker="w")

    order.refresh_from_db()
    assert (shown(order), held_for(order)) == (UNPAID, ["gateway_differs"])


def test_a_bare_event_of_money_that_went_back_since_pays_nothing(gateways: Simulator) -> None:
    order = an_order("midtrans")
    midtrans_shows(gateways, order, "pay", "refund")

    process(bare_event(order, "payment.processed"), receive_count=1, worker="w")

    assert shown(work(order)) == ("refunded", 0, 0)
    assert PaymentRefund.objects.get().amount_rupiah == TOTAL
    assert (held_for(order), list(check_orders([order]))) == ([], [])


def test_an_event_is_asked_for_once(gateways: Simulator) -> None:
    order = an_order("midtrans")
    midtrans_says(midtrans_shows(gateways, order, "pay"))
    before = gateways.midtrans_api.calls.count("status")

    work(order)

    assert gateways.midtrans_api.calls.count("status") == before + 1
