"""Held payments: asked for by one person, accepted by another, or dismissed."""

import json
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction

from orders import holds
from orders.exceptions import NotHeld
from orders.models import Order
from payments import exceptions, held
from payments.models import Acceptance, Payment
from skincare.events.exceptions import ReasonMissing
from tests.integration.orders.shop import a_product
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


def asked(order: Order, user: Any, reason: str = "the fee is the customer's") -> Payment:
    payment = the_payment(order)
    held.request_acceptance(payment_id=payment.pk, reason=reason, user=user)
    return payment


def test_two_persons_accept_and_the_order_is_paid(order: Order, ayu: Any, budi: Any) -> None:
    payment = asked(order, ayu)
    assert told(order) == []

    held.accept(payment_id=payment.pk, user=budi)

    payment.refresh_from_db()
    assert (payment.status, payment.held_reason, payment.amount_rupiah) == ("settled", "", 150_000)
    assert told(order) == [("payment.processed", 150_000)]
    order = consume_all(order)
    assert (order.status, order.held_reason) == ("paid", "")


def test_each_step_has_its_audit_entry(order: Order, ayu: Any, budi: Any) -> None:
    payment = asked(order, ayu)
    held.accept(payment_id=payment.pk, user=budi)

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
    payment = asked(order, ayu)

    with pytest.raises(exceptions.SamePerson):
        held.accept(payment_id=payment.pk, user=ayu)

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
        held.accept(payment_id=the_payment(order).pk, user=budi)


def test_a_request_is_for_the_hold_as_it_was(order: Order, ayu: Any, budi: Any) -> None:
    payment = asked(order, ayu)
    midtrans_posts(
        midtrans.card("settlement", order_id=str(order.pk), gross_amount="1.00", status_code="201")
    )

    with pytest.raises(exceptions.NotRequested):
        held.accept(payment_id=payment.pk, user=budi)
    # It can be asked for anew, and then the other one is closed.
    asked(order, ayu)
    assert Acceptance.objects.filter(closed_at=None).count() == 1


def test_it_is_asked_for_once(order: Order, ayu: Any, budi: Any) -> None:
    asked(order, ayu)
    with pytest.raises(exceptions.AlreadyRequested, match="by ayu"):
        asked(order, budi)


@pytest.mark.parametrize("reason", ["", "  "])
def test_a_reason_is_needed(order: Order, ayu: Any, reason: str) -> None:
    payment = the_payment(order)
    with pytest.raises(ReasonMissing):
        held.request_acceptance(payment_id=payment.pk, reason=reason, user=ayu)
    with pytest.raises(ReasonMissing):
        held.dismiss(payment_id=payment.pk, reason=reason, user=ayu)


def test_dismissing_ends_the_hold_and_pays_nothing(order: Order, ayu: Any) -> None:
    payment = asked(order, ayu)

    held.dismiss(payment_id=payment.pk, reason="sent back by hand", user=ayu)

    payment.refresh_from_db()
    order.refresh_from_db()
    assert (payment.status, payment.held_reason) == ("pending", "")
    assert (order.status, order.held_reason) == ("pending", "")
    assert told(order) == []
    assert Acceptance.objects.get().closed_at is not None
    with pytest.raises(NotHeld):
        held.dismiss(payment_id=payment.pk, reason="again", user=ayu)


def test_other_reasons_keep_the_order_held(order: Order, ayu: Any) -> None:
    payment = the_payment(order)
    order.refresh_from_db()
    order.held_reason += "\nout of stock: SKU-1"
    order.save()

    held.dismiss(payment_id=payment.pk, reason="sent back by hand", user=ayu)

    order.refresh_from_db()
    assert order.held_reason == "out of stock: SKU-1"


def test_an_order_paid_twice_is_accepted_without_a_second_event(ayu: Any, budi: Any) -> None:
    order = an_order()
    for number in ("1", "2"):
        midtrans_posts(
            midtrans.card("settlement", order_id=str(order.pk), transaction_id=f"twice-{number}")
        )
    second = Payment.objects.get(order=order, transaction_id="twice-2")
    assert second.held_reason.startswith("paid twice")
    events = told(order)

    held.request_acceptance(payment_id=second.pk, reason="the buyer gets it back", user=ayu)
    held.accept(payment_id=second.pk, user=budi)

    second.refresh_from_db()
    assert (second.status, second.held_reason) == ("settled", "")
    assert told(order) == events


def test_a_reversal_that_is_held_can_be_accepted(ayu: Any, budi: Any) -> None:
    order = an_order()
    midtrans_posts(midtrans.card("settlement", order_id=str(order.pk)))
    consume_all(order)
    midtrans_posts(midtrans.card("cancel", order_id=str(order.pk)))
    payment = the_payment(order)
    assert payment.is_held

    asked(order, ayu)
    held.accept(payment_id=payment.pk, user=budi)

    payment.refresh_from_db()
    assert payment.status == "cancelled"
    order = consume_all(order)
    assert (order.status, order.held_reason) == ("cancelled", "")


def test_a_settlement_after_its_reversal_cannot_be_accepted(ayu: Any) -> None:
    order = an_order()
    reference = {"order_id": str(order.pk)}
    midtrans_posts(midtrans.card("settlement", **reference))
    midtrans_posts(midtrans.card("deny", **reference))
    midtrans_posts(midtrans.card("capture", fraud_status="accept", **reference))
    payment = the_payment(order)
    assert (payment.status, payment.is_held) == ("denied", True)

    with pytest.raises(exceptions.CannotAccept, match="processed once and reversed"):
        asked(order, ayu)


def test_an_unknown_state_cannot_be_accepted(ayu: Any) -> None:
    order = an_order()
    midtrans_posts(midtrans.card("klingon", order_id=str(order.pk)))
    with pytest.raises(exceptions.CannotAccept, match="is not known"):
        asked(order, ayu)


def test_a_held_order_is_released_with_a_reason(order: Order) -> None:
    holds.release(order_id=order.pk, reason="checked by phone", actor="ayu")

    order.refresh_from_db()
    assert (order.held_reason, order.status) == ("", "pending")
    assert "checked by phone" in LogEntry.objects.get().change_message
    with pytest.raises(NotHeld):
        holds.release(order_id=order.pk, reason="again", actor="ayu")
    with pytest.raises(ReasonMissing):
        holds.release(order_id=order.pk, reason=" ", actor="ayu")
    assert a_product().stock == 10  # nothing else moved
