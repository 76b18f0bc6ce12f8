"""Payments, notifications and orders that wait for a person, and what the person decides."""

from typing import Any, Final
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET, require_http_methods

from orders.exceptions import NotHeld, OrderNotFound
from orders.models import Order
from payments import decisions, exceptions, notifications
from payments import unmatched as unmatched_notifications
from payments.hold_codes import FOUR_EYES, Decision
from payments.holds import open_holds
from payments.models import Hold, Payment, PaymentNotification, RefundRequest
from skincare.events.exceptions import ReasonMissing
from skincare.operations.base_view import Action, act, actor_of, page_for, refuse, show
from skincare.operations.forms import FormRefused, HoldForm, NotificationForm, read

#: Rows of each list; the oldest come first.
SHOWN: Final = 100
_DECIDING: Final = (
    "orders.release_order",
    "payments.request_acceptance",
    "payments.accept_held",
    "payments.dismiss_held",
)
_REFUSALS: Final = (
    ReasonMissing,
    OrderNotFound,
    NotHeld,
    exceptions.PaymentNotFound,
    exceptions.NotRequested,
    exceptions.AlreadyRequested,
    exceptions.SamePerson,
    exceptions.CannotDecide,
    exceptions.NotUnmatched,
    exceptions.NotUnreadable,
    exceptions.Malformed,
    exceptions.AnotherOrder,
)


@require_GET
@page_for("payments.view_payment")
def waiting(request: HttpRequest) -> HttpResponse:
    """List all that waits for a person."""
    unmatched_rows = PaymentNotification.objects.filter(outcome__in=PaymentNotification.OPEN)
    held_orders = Order.objects.exclude(held_reason="")
    return show(
        request,
        "held.html",
        title="Waiting for a person",
        payments=Payment.objects.exclude(held_reason="")
        .select_related("order")
        .order_by("updated_at")[:SHOWN],
        notifications=unmatched_rows.defer("document").order_by("received_at")[:SHOWN],
        orders=held_orders.order_by("updated_at")[:SHOWN],
        refunds=RefundRequest.objects.filter(status__in=RefundRequest.FOR_A_PERSON)
        .select_related("payment__order", "requested_by", "transferred_by")
        .order_by("requested_at")[:SHOWN],
        shown=SHOWN,
    )


@require_http_methods(["GET", "POST"])
@page_for("payments.view_payment")
def payment(request: HttpRequest, payment_id: UUID) -> HttpResponse:
    """Decide on the holds of a payment."""
    _check_may_decide(request)
    found = get_object_or_404(Payment.objects.select_related("order"), pk=payment_id)
    holds = [hold for hold in open_holds(found.order_id) if hold.payment_id == found.pk]
    if request.method == "POST":
        return _decide_hold(request, holds, to="operations:held_payment", payment_id=payment_id)
    return show(
        request,
        "held_payment.html",
        title=f"Payment {found.pk}",
        payment=found,
        holds=[_shown(hold, request) for hold in holds],
        notifications=found.notifications.order_by("received_at"),
    )


def _shown(hold: Hold, request: HttpRequest) -> dict[str, Any]:
    """Return what the page shows of a hold, and what this person can do about it."""
    asked = hold.acceptances.select_related("requested_by").filter(closed_at=None).first()
    may = request.user.has_perm
    return {
        "hold": hold,
        "asked": asked,
        "asked_by_me": asked is not None and asked.requested_by_id == request.user.pk,
        "reported": hold.notification,
        "requests": [
            (one.value, one.label)
            for one in decisions.offered(hold)
            if one in FOUR_EYES and may("payments.request_acceptance")
        ],
        "can_accept": may("payments.accept_held"),
        "can_dismiss": Decision.DISMISS in decisions.offered(hold) and may(_may_end(hold)),
        "can_cancel": Decision.CANCEL in decisions.offered(hold) and may("orders.release_order"),
    }


def _check_may_decide(request: HttpRequest) -> None:
    """Refuse a decision of somebody who may decide nothing, whatever the address names."""
    may = request.user.has_perm
    if request.method == "POST" and not any(may(one) for one in _DECIDING):
        raise PermissionDenied


def _may_end(hold: Hold) -> str:
    """Return the permission that ending this hold takes."""
    return "payments.dismiss_held" if hold.payment_id else "orders.release_order"


def _decide_hold(
    request: HttpRequest, holds: list[Hold], *, to: str, **arguments: Any
) -> HttpResponse:
    """Decide the hold that the form names; the only one where it names none."""
    try:
        form = read(HoldForm, request.POST)
    except FormRefused as error:
        return refuse(request, error, to=to, **arguments)
    named = form["hold"]
    chosen = [hold for hold in holds if not named or str(hold.pk) == named]
    reason = form["reason"]
    if len(chosen) != 1:
        return refuse(request, NotHeld("it is not held any more"), to=to, **arguments)
    hold = chosen[0]
    decision = Decision.REFUND if form["decision"] == "refund" else Decision.ACCEPT
    actions: dict[str, Action] = {
        "request": (
            "payments.request_acceptance",
            lambda: decisions.request_decision(
                hold_id=hold.pk, decision=decision, reason=reason, actor=actor_of(request)
            ),
            "Asked for. Another person has to accept.",
        ),
        "accept": (
            "payments.accept_held",
            lambda: decisions.accept_request(hold_id=hold.pk, actor=actor_of(request)),
            "Accepted.",
        ),
        "dismiss": (
            _may_end(hold),
            lambda: decisions.dismiss(hold_id=hold.pk, reason=reason, actor=actor_of(request)),
            "This hold is over.",
        ),
        "cancel": (
            "orders.release_order",
            lambda: decisions.decide_to_cancel(
                hold_id=hold.pk, reason=reason, actor=actor_of(request)
            ),
            "The order is cancelled.",
        ),
    }
    return act(request, actions, refusals=_REFUSALS, to=to, **arguments)


@require_http_methods(["GET", "POST"])
@page_for("payments.view_payment")
def unmatched(request: HttpRequest, notification_id: int) -> HttpResponse:
    """Match a notification to its order, or say that none will come."""
    try:
        form = read(NotificationForm, request.POST)
    except FormRefused as error:
        return refuse(request, error, to="operations:unmatched", notification_id=notification_id)
    reason, order_name = form["reason"], form["order"]
    actions: dict[str, Action] = {
        "match": (
            "payments.match_notification",
            lambda: unmatched_notifications.match(
                notification_id=notification_id,
                order=order_name,
                reason=reason,
                actor=actor_of(request),
            ),
            "Matched. The payment is held until it is accepted.",
        ),
        "dismiss": (
            "payments.match_notification",
            lambda: unmatched_notifications.dismiss(
                notification_id=notification_id, reason=reason, actor=actor_of(request)
            ),
            "Dismissed: nothing is to be done for it.",
        ),
        "read": (
            "payments.match_notification",
            lambda: notifications.read_again(
                notification_id=notification_id, actor=actor_of(request)
            ),
            "Read: what it says is a notification of its own now.",
        ),
    }
    if request.method == "POST":
        return act(
            request,
            actions,
            refusals=_REFUSALS,
            to="operations:unmatched",
            notification_id=notification_id,
        )
    return show(
        request,
        "unmatched.html",
        title=f"Notification {notification_id}",
        notification=get_object_or_404(PaymentNotification, pk=notification_id),
    )


@require_http_methods(["GET", "POST"])
@page_for("orders.view_order")
def order(request: HttpRequest, order_id: UUID) -> HttpResponse:
    """Decide on the holds of an order, and of its payments."""
    _check_may_decide(request)
    found = get_object_or_404(Order, pk=order_id)
    holds = open_holds(found.pk)
    if request.method == "POST":
        return _decide_hold(request, holds, to="operations:held_order", order_id=order_id)
    return show(
        request,
        "held_order.html",
        title=f"Order {found.number}",
        order=found,
        holds=[_shown(hold, request) for hold in holds],
    )
