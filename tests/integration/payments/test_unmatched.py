"""Notifications of orders that nobody knows: matched by a person, or dismissed."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model

from orders.exceptions import OrderNotFound
from orders.models import Order
from payments import decisions, exceptions, unmatched
from payments.hold_codes import Decision
from payments.holds import open_holds
from payments.models import PaymentNotification
from skincare.events.exceptions import ReasonMissing
from tests.integration.payments.gateways import (
    an_order,
    consume_all,
    midtrans_posts,
    the_payment,
    told,
)
from tests.unit.payments import midtrans_notifications as midtrans

pytestmark = pytest.mark.django_db

LOST = str(uuid4())


@pytest.fixture
def ayu() -> Any:
    return get_user_model().objects.create_user("ayu")


@pytest.fixture
def notification() -> PaymentNotification:
    """A settlement for an order that is not there."""
    assert midtrans_posts(midtrans.card("settlement", order_id=LOST)).status_code == 200
    return PaymentNotification.objects.get(outcome="unmatched")


@pytest.mark.parametrize("named_by", ["number", "id"])
def test_matching_holds_until_another_person_accepts(
    named_by: str, notification: PaymentNotification, ayu: Any
) -> None:
    order = an_order()
    name = order.number.lower() if named_by == "number" else str(order.pk)

    payment = unmatched.match(
        notification_id=notification.pk, order=name, reason="told by phone", actor=ayu.username
    )

    assert payment == the_payment(order)
    assert payment.held_reason == "matched by hand: told by phone"
    assert told(order) == []
    notification.refresh_from_db()
    assert (notification.outcome, notification.payment) == ("held", payment)
    # Then as any held payment.
    [hold] = open_holds(order.pk)
    decisions.request_decision(
        hold_id=hold.pk,
        decision=Decision.ACCEPT,
        reason="checked at the gateway",
        actor=ayu.username,
    )
    budi = get_user_model().objects.create_user("budi")
    decisions.accept_request(hold_id=hold.pk, actor=budi.username)
    assert consume_all(order).status == "paid"


def test_a_repeat_after_matching_changes_nothing(
    notification: PaymentNotification, ayu: Any
) -> None:
    order = an_order()
    unmatched.match(
        notification_id=notification.pk, order=order.number, reason="x", actor=ayu.username
    )

    assert midtrans_posts(midtrans.card("settlement", order_id=LOST)).status_code == 200
    assert the_payment(order).is_held


def test_dismissed_is_answered_with_200(notification: PaymentNotification, ayu: Any) -> None:
    unmatched.dismiss(notification_id=notification.pk, reason="another shop's", actor=ayu.username)

    notification.refresh_from_db()
    assert (notification.outcome, notification.reason) == ("dismissed", "dismissed: another shop's")
    assert midtrans_posts(midtrans.card("settlement", order_id=LOST)).status_code == 200
    assert LogEntry.objects.get().user == ayu


def test_what_has_an_outcome_is_refused(notification: PaymentNotification, ayu: Any) -> None:
    unmatched.dismiss(notification_id=notification.pk, reason="another shop's", actor=ayu.username)
    order = an_order()

    with pytest.raises(exceptions.NotUnmatched):
        unmatched.dismiss(notification_id=notification.pk, reason="again", actor=ayu.username)
    with pytest.raises(exceptions.NotUnmatched):
        unmatched.match(
            notification_id=notification.pk, order=order.number, reason="x", actor=ayu.username
        )


def test_an_unknown_order_is_refused(notification: PaymentNotification, ayu: Any) -> None:
    for name in ("SK-0000-0000", str(uuid4())):
        with pytest.raises(OrderNotFound):
            unmatched.match(
                notification_id=notification.pk, order=name, reason="x", actor=ayu.username
            )


def test_a_reason_is_needed(notification: PaymentNotification, ayu: Any) -> None:
    order: Order = an_order()
    with pytest.raises(ReasonMissing):
        unmatched.match(
            notification_id=notification.pk, order=order.number, reason="", actor=ayu.username
        )
    with pytest.raises(ReasonMissing):
        unmatched.dismiss(notification_id=notification.pk, reason="", actor=ayu.username)


def test_a_transaction_of_another_order_is_refused(ayu: Any) -> None:
    mine, other = an_order(), an_order()
    midtrans_posts(midtrans.card("pending", order_id=str(other.pk), transaction_id="t-1"))
    known = PaymentNotification.objects.get()
    values = {field.attname: getattr(known, field.attname) for field in known._meta.concrete_fields}
    lost = PaymentNotification.objects.create(
        **{**values, "id": None, "identity": "x", "outcome": "unmatched", "payment_id": None}
    )

    with pytest.raises(exceptions.AnotherOrder):
        unmatched.match(notification_id=lost.pk, order=mine.number, reason="x", actor=ayu.username)
