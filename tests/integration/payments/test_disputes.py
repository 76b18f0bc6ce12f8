"""A dispute that the shop wins: its money comes back under an order that was refunded."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from orders.models import Order
from payments import decisions
from payments.hold_codes import Decision, HoldCode
from payments.holds import open_holds
from payments.models import Hold, Payment, PaymentNotification, PaymentRefund
from payments.money_check import check_money
from payments.reconciliation import sweep
from payments.shipping import ship
from skincare.local.gateways.actions import act_on_invoice, act_on_snap
from skincare.local.gateways.simulator import Simulator
from tests.integration.payments.gateways import TOTAL, an_order, consume_all, midtrans_posts
from tests.integration.payments.test_confirmation import (
    PAID,
    held_for,
    midtrans_says,
    midtrans_shows,
    shown,
    work,
    xendit_says,
    xendit_shows,
)
from tests.unit.payments import midtrans_notifications as midtrans

pytestmark = pytest.mark.django_db

REFUNDED = ("refunded", 0, 0)


@pytest.fixture
def ayu() -> Any:
    return get_user_model().objects.create_user("ayu")


@pytest.fixture
def budi() -> Any:
    return get_user_model().objects.create_user("budi")


def charged_back(gateways: Simulator, *, action: str = "charge back") -> Order:
    """A paid order whose buyer's bank took the money, or a part of it, back."""
    order = an_order("midtrans")
    midtrans_says(midtrans_shows(gateways, order, "capture", "settle"))
    assert shown(work(order)) == PAID
    bank(gateways, action)
    return work(order)


def bank(gateways: Simulator, action: str) -> None:
    """The buyer's bank does it, and Midtrans notifies it."""
    [session] = gateways.midtrans.sessions.values()
    act_on_snap(gateways.midtrans, session, action, {})
    midtrans_says(gateways.webhooks.all[-1].document)


def accept(order: Order, ayu: Any, budi: Any) -> None:
    [hold] = [one for one in open_holds(order.pk) if one.code == HoldCode.CONTRADICTS]
    decisions.request_decision(
        hold_id=hold.pk, decision=Decision.ACCEPT, reason="the bank says so", actor=ayu.username
    )
    decisions.accept_request(hold_id=hold.pk, actor=budi.username)
    order.refresh_from_db()


def test_a_dispute_that_was_won_is_held_and_then_pays_the_order_again(
    gateways: Simulator, ayu: Any, budi: Any
) -> None:
    # given
    order = charged_back(gateways)
    assert (shown(order), held_for(order)) == (REFUNDED, ["chargeback"])
    # when: word for word the first settlement, which was stored then
    bank(gateways, "win the dispute")
    sweep()
    work(order)
    # then
    assert (shown(order), held_for(order)) == (REFUNDED, ["chargeback", "contradicts"])
    hold = Hold.objects.get(code=HoldCode.CONTRADICTS)
    assert hold.reason == "settled after 150000 rupiah were charged back: was the dispute won?"

    accept(order, ayu, budi)

    assert (shown(order), held_for(order)) == (PAID, [])
    payment = Payment.objects.get(order=order)
    assert (payment.status, payment.refunded_rupiah) == ("settled", 0)
    assert sorted(PaymentRefund.objects.values_list("kind", "amount_rupiah")) == [
        ("chargeback", TOTAL),
        ("reversal", -TOTAL),
    ]
    assert order.can_be_shipped
    assert list(check_money()) == []


def refunded(gateways: Simulator) -> Order:
    """A paid order whose money went back through Midtrans."""
    order = an_order("midtrans")
    midtrans_says(midtrans_shows(gateways, order, "capture", "settle"))
    assert shown(work(order)) == PAID
    gateways.midtrans.refund(gateways.midtrans.transactions[-1], amount=None, key="k", reason="r")
    midtrans_says(gateways.webhooks.all[-1].document)
    assert (shown(work(order)), held_for(order)) == (REFUNDED, [])
    return order


def test_a_refund_that_came_back_is_held_and_then_pays_the_order_again(
    gateways: Simulator, ayu: Any, budi: Any
) -> None:
    # given
    order = refunded(gateways)
    # when: word for word the first settlement, which was stored then
    gateways.midtrans.return_refund(gateways.midtrans.transactions[-1])
    midtrans_says(gateways.webhooks.all[-1].document)
    sweep()
    work(order)
    # then
    assert (shown(order), held_for(order)) == (REFUNDED, ["contradicts"])
    hold = Hold.objects.get(code=HoldCode.CONTRADICTS)
    assert hold.reason == "settled after 150000 rupiah were refunded: did the refund come back?"

    accept(order, ayu, budi)

    assert (shown(order), held_for(order)) == (PAID, [])
    payment = Payment.objects.get(order=order)
    assert (payment.status, payment.refunded_rupiah) == ("settled", 0)
    assert order.can_be_shipped
    assert list(check_money()) == []


def test_a_settlement_that_is_repeated_late_after_a_refund_changes_nothing(
    gateways: Simulator,
) -> None:
    order = refunded(gateways)
    settlement = PaymentNotification.objects.filter(status="settled").earliest("id").payload

    midtrans_says({**settlement, "order_id": Payment.objects.get().reference})
    sweep()
    work(order)

    assert (shown(order), held_for(order)) == (REFUNDED, [])


def test_a_refund_that_the_gateway_had_not_shown_yet_ends_the_hold(gateways: Simulator) -> None:
    order = refunded(gateways)
    transaction = gateways.midtrans.transactions[-1]
    refunds = list(transaction.refunds)
    gateways.midtrans.return_refund(transaction)
    midtrans_says(gateways.webhooks.all[-1].document)
    sweep()
    assert held_for(work(order)) == ["contradicts"]

    transaction.refunds.extend(refunds)
    gateways.midtrans.become(transaction, "refund")
    midtrans_says(gateways.webhooks.all[-1].document)
    Payment.objects.update(next_ask_at=timezone.now())
    sweep()

    assert (shown(work(order)), held_for(order)) == (REFUNDED, [])


def test_half_of_a_payment_comes_back_too(gateways: Simulator, ayu: Any, budi: Any) -> None:
    order = charged_back(gateways, action="charge back half")
    assert order.status == "partly_refunded"

    bank(gateways, "win the dispute")
    sweep()
    accept(work(order), ayu, budi)

    assert (shown(order), held_for(order)) == (PAID, [])
    assert list(check_money()) == []


def test_who_looked_and_found_no_money_changes_nothing(gateways: Simulator, ayu: Any) -> None:
    order = charged_back(gateways)
    bank(gateways, "win the dispute")
    sweep()
    [hold] = [one for one in open_holds(order.pk) if one.code == HoldCode.CONTRADICTS]

    decisions.dismiss(hold_id=hold.pk, reason="it is not on our account", actor=ayu.username)

    order.refresh_from_db()
    assert (shown(order), held_for(order)) == (REFUNDED, ["chargeback"])
    assert list(check_money()) == []


def test_a_settlement_that_is_repeated_after_a_chargeback_is_not_taken_for_money(
    gateways: Simulator,
) -> None:
    order = charged_back(gateways)
    first = next(one for one in gateways.webhooks.all if "settlement_time" in one.document)

    midtrans_says(first.document)
    sweep()
    work(order)

    assert (shown(order), held_for(order)) == (REFUNDED, ["chargeback"])


@pytest.mark.parametrize(
    "words", [["chargeback", "settlement"], ["capture", "chargeback", "settlement"]]
)
def test_a_settlement_after_a_chargeback_is_held_where_no_gateway_is_asked(
    words: list[str], ayu: Any, budi: Any
) -> None:
    order = an_order()
    for word in words:
        midtrans_posts(midtrans.card(word, order_id=str(order.pk)))
    order = consume_all(order)

    assert (shown(order), held_for(order)) == (REFUNDED, ["chargeback", "contradicts"])

    accept(order, ayu, budi)

    assert (shown(order), held_for(order)) == (PAID, [])
    assert list(check_money()) == []


def test_goods_that_were_out_are_paid_again(gateways: Simulator, ayu: Any, budi: Any) -> None:
    # given
    order = an_order("midtrans")
    midtrans_says(midtrans_shows(gateways, order, "capture", "settle"))
    work(order)
    ship(order_id=order.pk, shipped_at=timezone.now(), actor=ayu.username)
    bank(gateways, "charge back")
    work(order)
    assert held_for(order) == ["chargeback", "goods_out"]
    # when
    bank(gateways, "win the dispute")
    sweep()
    accept(order, ayu, budi)
    # then
    assert (shown(order), held_for(order)) == (PAID, [])
    assert list(check_money()) == []


def test_money_that_comes_back_under_an_order_that_was_cancelled_is_held(
    gateways: Simulator, ayu: Any, budi: Any
) -> None:
    order = charged_back(gateways)
    decisions.cancel_order(order_id=order.pk, reason="the buyer wants it so", actor=ayu.username)
    bank(gateways, "win the dispute")
    sweep()

    accept(order, ayu, budi)

    assert held_for(order) == ["paid_after_cancel"]
    assert not order.can_be_shipped
    assert list(check_money()) == []


def test_a_second_chargeback_after_a_dispute_that_was_won_is_held_again(
    gateways: Simulator, ayu: Any, budi: Any
) -> None:
    order = charged_back(gateways)
    bank(gateways, "win the dispute")
    sweep()
    accept(order, ayu, budi)

    bank(gateways, "charge back")
    work(order)

    assert (shown(order), held_for(order)) == (REFUNDED, ["chargeback"])
    assert list(check_money()) == []


def test_a_second_chargeback_in_the_words_of_the_first_is_held(
    gateways: Simulator, ayu: Any, budi: Any
) -> None:
    # given
    order = charged_back(gateways)
    first, [transaction] = gateways.webhooks.all[-1].document, gateways.midtrans.transactions
    refunds = list(transaction.refunds)
    bank(gateways, "win the dispute")
    sweep()
    accept(order, ayu, budi)
    # when
    transaction.state, transaction.refunds = "chargeback", refunds
    midtrans_says(first)
    sweep()
    # then
    assert held_for(order) == ["refund_differs"]
    order.refresh_from_db()
    assert not order.can_be_shipped


# -- Xendit tells of disputes themselves -----------------------------------------------------------


def disputed(gateways: Simulator, *actions: str) -> Order:
    """An order that was paid by card through an invoice, and whose buyer has complained."""
    order = an_order("xendit")
    xendit_says(xendit_shows(gateways, order, "pay"))
    assert shown(work(order)) == PAID
    for action in ("charge back", *actions):
        happens(gateways, order, action)
    return work(order)


def happens(gateways: Simulator, order: Order, action: str) -> None:
    invoice = gateways.xendit.invoices[Payment.objects.get(order=order).session_id]
    act_on_invoice(gateways.xendit, invoice, action, {})
    xendit_says(gateways.webhooks.all[-1].document)


def test_a_dispute_that_is_raised_is_held_and_moves_no_money(gateways: Simulator) -> None:
    order = disputed(gateways)

    assert (shown(order), held_for(order)) == (PAID, ["chargeback"])
    [hold] = open_holds(order.pk)
    [dispute] = gateways.xendit.disputes
    assert hold.reason == f"action_required: dispute {dispute} of 150000.00 rupiah"
    assert Payment.objects.count() == 1


@pytest.mark.parametrize(
    ("action", "expected", "went_back"),
    [
        ("lose the dispute", REFUNDED, TOTAL),
        ("lose half of the dispute", ("partly_refunded", 2, 0), TOTAL // 2),
    ],
)
def test_a_dispute_that_is_lost_is_money_gone(
    action: str, expected: tuple[str, int, int], went_back: int, gateways: Simulator
) -> None:
    order = disputed(gateways, action)

    assert (shown(order), held_for(order)) == (expected, ["chargeback", "chargeback"])
    refund = PaymentRefund.objects.get()
    assert (refund.kind, refund.amount_rupiah) == ("chargeback", went_back)
    assert list(check_money()) == []


def test_a_dispute_that_is_won_at_once_changes_nothing(gateways: Simulator) -> None:
    order = disputed(gateways, "win the dispute")

    assert (shown(order), held_for(order)) == (PAID, ["chargeback"])
    assert not PaymentRefund.objects.exists()


def test_a_dispute_that_was_lost_and_is_won_after_all_brings_the_money_back(
    gateways: Simulator, ayu: Any, budi: Any
) -> None:
    order = disputed(gateways, "lose the dispute")

    happens(gateways, order, "win the dispute")
    work(order)
    assert held_for(order) == ["chargeback", "chargeback", "contradicts"]
    accept(order, ayu, budi)

    assert (shown(order), held_for(order)) == (PAID, [])
    assert list(check_money()) == []


def test_a_lost_dispute_that_the_gateway_does_not_know_takes_nothing(gateways: Simulator) -> None:
    order = disputed(gateways)
    [told] = gateways.xendit.disputes.values()

    xendit_says({**told, "event": "dispute.lost", "status": "LOST", "id": "mi-dspt-forged"})
    work(order)

    assert (shown(order), held_for(order)) == (PAID, ["chargeback", "gateway_differs"])


def test_a_dispute_about_what_we_do_not_know_opens_no_payment(gateways: Simulator) -> None:
    order = an_order("xendit")
    told = {
        "event": "dispute.lost",
        "id": "mi-dspt-1",
        "status": "LOST",
        "currency": "IDR",
        "amount": {"initial": "150000.00", "terminal": None},
        "payment_id": None,
        "reference_id": str(order.pk),
    }

    xendit_says(told)

    assert PaymentNotification.objects.get().outcome == "unmatched"
    assert Payment.objects.count() == 1
    assert Payment.objects.get().transaction_id == ""
