"""Held payments: asked for by one person, accepted by another, or dismissed."""

import json
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.test import Client

from orders.exceptions import NotHeld
from orders.locks import lock_order
from orders.models import Order
from payments import decisions, exceptions
from payments.hold_codes import Decision, HoldCode
from payments.holds import open_hold, open_holds
from payments.models import Acceptance, Hold, Payment
from skincare.events.exceptions import ReasonMissing, UnknownActor
from tests.integration.orders.shop import numbers, place
from tests.integration.payments.gateways import (
    an_order,
    consume_all,
    midtrans_posts,
    the_payment,
    told,
)
from tests.unit.payments import midtrans_notifications as midtrans

pytestmark = pytest.mark.django_db


@pytest.fixture
def ayu() -> Any:
    return get_user_model().objects.create_user("ayu")


@pytest.fixture
def budi() -> Any:
    return get_user_model().objects.create_user("budi")


@pytest.fixture
def order() -> Order:
    """An order for which the buyer paid a fee on top: held."""
    order = an_order()
    midtrans_posts(midtrans.card("settlement", order_id=str(order.pk), gross_amount="150071.00"))
    assert the_payment(order).held_reason == "amount 150071 rupiah instead of 150000"
    return order


def the_hold(order: Order) -> Hold:
    """The one open hold of the order."""
    [hold] = open_holds(order.pk)
    return hold


def asked(
    order: Order,
    user: Any,
    reason: str = "the fee is the customer's",
    decision: Decision = Decision.ACCEPT,
) -> Hold:
    hold = the_hold(order)
    decisions.request_decision(
        hold_id=hold.pk, decision=decision, reason=reason, actor=user.username
    )
    return hold


def test_two_persons_accept_and_the_order_is_paid(order: Order, ayu: Any, budi: Any) -> None:
    hold = asked(order, ayu)
    assert told(order) == []

    decisions.accept_request(hold_id=hold.pk, actor=budi.username)

    payment = the_payment(order)
    assert (payment.status, payment.held_reason, payment.amount_rupiah) == ("settled", "", 150_000)
    assert told(order) == [("payment.processed", 150_000)]
    order = consume_all(order)
    assert (order.status, order.held_reason) == ("paid", "")


def test_each_step_has_its_audit_entry(order: Order, ayu: Any, budi: Any) -> None:
    hold = asked(order, ayu)
    decisions.accept_request(hold_id=hold.pk, actor=budi.username)
    payment = the_payment(order)

    first, second = LogEntry.objects.order_by("id")
    assert (first.user, second.user) == (ayu, budi)
    assert first.object_id == second.object_id == str(payment.pk)
    assert second.change_message.startswith("accepted: ")
    assert json.loads(second.change_message.removeprefix("accepted: ")) == {
        "reason": "the fee is the customer's",
        "requested_by": "ayu",
        "was_held_for": "amount 150071 rupiah instead of 150000",
    }


def test_who_asks_cannot_accept(order: Order, ayu: Any) -> None:
    hold = asked(order, ayu)

    with pytest.raises(exceptions.SamePerson):
        decisions.accept_request(hold_id=hold.pk, actor=ayu.username)

    assert the_payment(order).is_held
    assert told(order) == []


def test_the_database_refuses_one_person_too(order: Order, ayu: Any) -> None:
    asked(order, ayu)
    request = Acceptance.objects.get()
    with pytest.raises(IntegrityError, match="two_persons"), transaction.atomic():
        Acceptance.objects.filter(pk=request.pk).update(
            accepted_by=ayu, closed_at=request.requested_at
        )


def test_nobody_accepts_what_nobody_asked_for(order: Order, budi: Any) -> None:
    with pytest.raises(exceptions.NotRequested):
        decisions.accept_request(hold_id=the_hold(order).pk, actor=budi.username)


def test_only_a_user_decides(order: Order, ayu: Any) -> None:
    hold = asked(order, ayu)

    with pytest.raises(UnknownActor):
        decisions.accept_request(hold_id=hold.pk, actor="root@web-1")

    assert the_hold(order) == hold
    assert told(order) == []


def test_a_request_is_for_one_hold_and_closing_one_closes_only_that_one(
    order: Order, ayu: Any, budi: Any
) -> None:
    first = asked(order, ayu)
    midtrans_posts(
        midtrans.card("settlement", order_id=str(order.pk), gross_amount="1.00", status_code="201")
    )
    _, second = open_holds(order.pk)
    with pytest.raises(exceptions.NotRequested):
        decisions.accept_request(hold_id=second.pk, actor=budi.username)

    decisions.accept_request(hold_id=first.pk, actor=budi.username)

    order.refresh_from_db()
    assert order.status == "paid"
    assert the_hold(order) == second
    assert order.held_reason == f"payment {the_payment(order).pk}: {second.reason}"
    assert not order.can_be_shipped


def test_it_is_asked_for_once(order: Order, ayu: Any, budi: Any) -> None:
    asked(order, ayu)
    with pytest.raises(exceptions.AlreadyRequested, match="by ayu"):
        asked(order, budi)


@pytest.mark.parametrize("reason", ["", "  "])
def test_a_reason_is_needed(order: Order, ayu: Any, reason: str) -> None:
    hold = the_hold(order)
    with pytest.raises(ReasonMissing):
        decisions.request_decision(
            hold_id=hold.pk, decision=Decision.ACCEPT, reason=reason, actor=ayu.username
        )
    with pytest.raises(ReasonMissing):
        decisions.dismiss(hold_id=hold.pk, reason=reason, actor=ayu.username)
    with pytest.raises(ReasonMissing):
        decisions.cancel_order(order_id=order.pk, reason=reason, actor=ayu.username)


def test_dismissing_ends_the_hold_and_pays_nothing(order: Order, ayu: Any) -> None:
    hold = asked(order, ayu)

    decisions.dismiss(hold_id=hold.pk, reason="sent back by hand", actor=ayu.username)

    payment = the_payment(order)
    order.refresh_from_db()
    assert (payment.status, payment.held_reason) == ("pending", "")
    assert (order.status, order.held_reason) == ("pending", "")
    assert told(order) == []
    assert Acceptance.objects.get().closed_at is not None
    hold.refresh_from_db()
    assert (hold.closed_by, hold.closed_how, hold.closed_reason) == (
        ayu,
        "dismiss",
        "sent back by hand",
    )
    with pytest.raises(NotHeld):
        decisions.dismiss(hold_id=hold.pk, reason="again", actor=ayu.username)


def test_a_waiting_order_whose_payment_is_held_cannot_be_let_go_by_one_click(
    order: Order, ayu: Any
) -> None:
    with transaction.atomic():
        locked = lock_order(order.pk)
        other = open_hold(locked, HoldCode.OTHER, "the address is odd")

    decisions.dismiss(hold_id=other.pk, reason="it is right", actor=ayu.username)

    order.refresh_from_db()
    assert order.is_held
    assert not order.can_be_shipped
    assert Client().get(f"/v1/orders/{order.pk}").json()["is_held"] is True


def test_a_reason_of_two_lines_can_be_ended(ayu: Any) -> None:
    order = an_order()
    with transaction.atomic():
        hold = open_hold(lock_order(order.pk), HoldCode.OTHER, "first line\nsecond line")

    decisions.dismiss(hold_id=hold.pk, reason="fine", actor=ayu.username)

    order.refresh_from_db()
    assert order.held_reason == ""


def test_a_reversal_that_is_held_can_be_accepted(ayu: Any, budi: Any) -> None:
    order = an_order()
    midtrans_posts(midtrans.card("settlement", order_id=str(order.pk)))
    consume_all(order)
    midtrans_posts(midtrans.card("cancel", order_id=str(order.pk)))
    assert the_payment(order).is_held

    decisions.accept_request(hold_id=asked(order, ayu).pk, actor=budi.username)

    assert the_payment(order).status == "cancelled"
    order = consume_all(order)
    assert (order.status, order.held_reason) == ("pending", "")


def test_a_settlement_after_its_reversal_can_be_accepted_and_is_another_event(
    ayu: Any, budi: Any
) -> None:
    order = an_order()
    reference = {"order_id": str(order.pk)}
    midtrans_posts(midtrans.card("settlement", **reference))
    midtrans_posts(midtrans.card("deny", **reference))
    midtrans_posts(midtrans.card("capture", fraud_status="accept", **reference))
    assert the_payment(order).status == "denied"

    decisions.accept_request(hold_id=asked(order, ayu).pk, actor=budi.username)

    assert told(order) == [
        ("payment.processed", 150_000),
        ("payment.failed", 150_000),
        ("payment.processed", 150_000),
    ]
    assert consume_all(order).status == "paid"


def test_an_unknown_state_cannot_be_accepted(ayu: Any) -> None:
    order = an_order()
    midtrans_posts(midtrans.card("klingon", order_id=str(order.pk)))
    assert Decision.ACCEPT not in decisions.offered(the_hold(order))
    with pytest.raises(exceptions.CannotDecide, match="is not known"):
        asked(order, ayu)


# -- Money that the order does not need ------------------------------------------------------------


def paid_twice() -> tuple[Order, Payment]:
    """An order that two transactions paid, and the second of them."""
    order = an_order()
    for number in ("1", "2"):
        midtrans_posts(
            midtrans.card("settlement", order_id=str(order.pk), transaction_id=f"twice-{number}")
        )
    order = consume_all(order)
    assert not order.can_be_shipped
    return order, Payment.objects.get(order=order, transaction_id="twice-2")


def test_money_that_an_order_does_not_need_cannot_be_accepted(ayu: Any) -> None:
    order, second = paid_twice()
    assert second.held_reason.startswith("paid twice")

    with pytest.raises(exceptions.CannotDecide, match="is paid already: refund this payment"):
        asked(order, ayu)


def test_a_surplus_is_refunded_by_two_persons_and_then_the_order_can_be_shipped(
    ayu: Any, budi: Any
) -> None:
    order, _ = paid_twice()
    hold = asked(order, ayu, "the buyer paid twice", Decision.REFUND)

    decisions.accept_request(hold_id=hold.pk, actor=budi.username)

    order.refresh_from_db()
    assert not order.can_be_shipped, "the money is still here"
    midtrans_posts(
        midtrans.refunded(
            ("r1", "150000.00"),
            transaction_status="refund",
            transaction_id="twice-2",
            order_id=str(order.pk),
        )
    )
    order = consume_all(order)
    assert (order.status, order.refunded_rupiah, order.held_reason) == ("paid", 0, "")
    assert order.can_be_shipped
    hold.refresh_from_db()
    assert hold.closed_how == "refund"


def test_a_surplus_that_was_sent_back_by_hand_is_recorded_so(ayu: Any) -> None:
    order, second = paid_twice()

    decisions.dismiss(hold_id=the_hold(order).pk, reason="bank transfer 4711", actor=ayu.username)

    second.refresh_from_db()
    assert (second.status, second.refunded_rupiah) == ("refunded", 150_000)
    assert second.refunds.get().kind == "by_hand"
    order = consume_all(order)
    assert order.can_be_shipped


def test_two_payments_of_which_a_part_went_back_are_held_for_what_is_too_much(ayu: Any) -> None:
    order = an_order()
    for number in ("1", "2"):
        part = (f"part-{number}", "50000.00")
        midtrans_posts(
            midtrans.refunded(part, order_id=str(order.pk), transaction_id=f"t-{number}")
        )
    order = consume_all(order)
    assert (order.status, order.can_be_shipped) == ("paid", False)

    decisions.dismiss(hold_id=the_hold(order).pk, reason="bank transfer 4712", actor=ayu.username)

    order.refresh_from_db()
    assert (order.status, order.can_be_shipped) == ("paid", True)
    kept = sum(one.amount_rupiah - one.refunded_rupiah for one in order.payments.all())
    assert kept == order.total_rupiah


def test_the_hold_on_the_second_payment_can_be_accepted_when_the_first_is_reversed(
    ayu: Any, budi: Any
) -> None:
    order, second = paid_twice()
    midtrans_posts(
        midtrans.card("deny", order_id=str(order.pk), transaction_id="twice-1", status_code="202")
    )

    decisions.accept_request(hold_id=asked(order, ayu).pk, actor=budi.username)

    order = consume_all(order)
    assert (order.status, order.can_be_shipped) == ("paid", True)
    second.refresh_from_db()
    assert (second.status, second.held_reason) == ("settled", "")


def test_money_after_a_refund_pays_the_order_and_waits_for_a_person(ayu: Any, budi: Any) -> None:
    order = an_order()
    reference = {"order_id": str(order.pk)}
    refund = midtrans.refunded(("r1", "150000.00"), transaction_status="refund", **reference)
    midtrans_posts(midtrans.card("settlement", **reference))
    midtrans_posts(refund)
    midtrans_posts(midtrans.card("settlement", transaction_id="second", **reference))
    order = consume_all(order)
    assert (order.status, order.is_held) == ("paid", True)

    decisions.accept_request(hold_id=asked(order, ayu).pk, actor=budi.username)

    order.refresh_from_db()
    assert order.can_be_shipped


# -- Cancelling ------------------------------------------------------------------------------------


def test_a_cancelled_order_gives_its_stock_back(ayu: Any) -> None:
    order = an_order()

    decisions.cancel_order(order_id=order.pk, reason="the buyer asked", actor=ayu.username)

    order.refresh_from_db()
    assert (order.status, order.is_held) == ("cancelled", False)
    assert numbers(order.lines.get().product) == (10, 0)


def test_a_paid_order_that_is_cancelled_is_held_until_its_money_is_back(
    ayu: Any, budi: Any
) -> None:
    order = an_order()
    midtrans_posts(midtrans.card("settlement", order_id=str(order.pk)))
    order = consume_all(order)

    decisions.cancel_order(order_id=order.pk, reason="the buyer asked", actor=ayu.username)

    order.refresh_from_db()
    assert (order.status, order.can_be_shipped) == ("paid", False)
    hold = asked(order, ayu, "as asked", Decision.REFUND)
    decisions.accept_request(hold_id=hold.pk, actor=budi.username)
    midtrans_posts(
        midtrans.refunded(("r1", "150000.00"), transaction_status="refund", order_id=str(order.pk))
    )
    order = consume_all(order)
    assert (order.status, order.is_held) == ("refunded", False)
    assert numbers(order.lines.get().product) == (10, 0)


def test_money_that_comes_after_the_order_was_cancelled_waits_for_a_person(
    ayu: Any, budi: Any
) -> None:
    order = an_order()
    decisions.cancel_order(order_id=order.pk, reason="the buyer asked", actor=ayu.username)
    midtrans_posts(midtrans.card("settlement", order_id=str(order.pk)))
    order = consume_all(order)
    assert (order.status, order.can_be_shipped) == ("paid", False)

    decisions.accept_request(hold_id=asked(order, ayu).pk, actor=budi.username)

    order.refresh_from_db()
    assert (order.cancelled_at, order.can_be_shipped) == (None, True)


# -- Out of stock ----------------------------------------------------------------------------------


def test_an_order_that_lacks_its_goods_takes_them_when_they_are_there(ayu: Any) -> None:
    order = an_order()
    decisions.cancel_order(order_id=order.pk, reason="x", actor=ayu.username)
    Order.objects.filter(pk=order.pk).update(cancelled_at=None)
    product = order.lines.get().product
    cart = Order.objects.get(pk=place((product, 9), payment_method="midtrans").order_id)
    midtrans_posts(midtrans.card("settlement", order_id=str(order.pk)))
    order = consume_all(order)
    assert "out of stock" in order.held_reason
    with pytest.raises(exceptions.CannotDecide, match="it is as before"):
        decisions.dismiss(hold_id=the_hold(order).pk, reason="ship it", actor=ayu.username)
    decisions.cancel_order(order_id=cart.pk, reason="x", actor=ayu.username)

    decisions.dismiss(hold_id=the_hold(order).pk, reason="they are there", actor=ayu.username)

    order.refresh_from_db()
    assert order.can_be_shipped
    assert numbers(product) == (8, 0)
