"""Payments, notifications and orders that wait for a person, and what the person decides."""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_GET, require_http_methods

from orders import holds
from orders.exceptions import NotHeld, OrderNotFound
from orders.models import Order
from payments import exceptions, held
from payments import unmatched as unmatched_notifications
from payments.models import Acceptance, Payment, PaymentNotification
from skincare.events.exceptions import ReasonMissing
from skincare.operations.base_view import actor_of, page_for, refuse, show

#: Rows of each list; the oldest come first.
SHOWN: Final = 100
_REFUSALS: Final = (
    ReasonMissing,
    OrderNotFound,
    NotHeld,
    exceptions.PaymentNotFound,
    exceptions.NotRequested,
    exceptions.AlreadyRequested,
    exceptions.SamePerson,
    exceptions.CannotAccept,
    exceptions.NotUnmatched,
    exceptions.AnotherOrder,
)


@require_GET
@page_for("payments.view_payment")
def waiting(request: HttpRequest) -> HttpResponse:
    """List all that waits for a person."""
    unmatched_rows = PaymentNotification.objects.filter(
        outcome=PaymentNotification.Outcome.UNMATCHED
    )
    held_orders = Order.objects.exclude(held_reason="")
    return show(
        request,
        "held.html",
        title="Waiting for a person",
        payments=Payment.objects.exclude(held_reason="")
        .select_related("order")
        .order_by("updated_at")[:SHOWN],
        notifications=unmatched_rows.order_by("received_at")[:SHOWN],
        orders=held_orders.order_by("updated_at")[:SHOWN],
        shown=SHOWN,
    )


@require_http_methods(["GET", "POST"])
@page_for("payments.view_payment")
def payment(request: HttpRequest, payment_id: UUID) -> HttpResponse:
    """Decide a held payment: ask for its acceptance, accept what another asked for, or dismiss."""
    reason = request.POST.get("reason", "")
    actions: dict[str, tuple[str, Callable[[], Any], str]] = {
        "request": (
            "payments.request_acceptance",
            lambda: held.request_acceptance(
                payment_id=payment_id, reason=reason, user=request.user
            ),
            "Asked for. Another person has to accept.",
        ),
        "accept": (
            "payments.accept_held",
            lambda: held.accept(payment_id=payment_id, user=request.user),
            "Accepted as the gateway told it.",
        ),
        "dismiss": (
            "payments.dismiss_held",
            lambda: held.dismiss(payment_id=payment_id, reason=reason, user=request.user),
            "The hold is over; the payment stays as it was.",
        ),
    }
    if request.method == "POST":
        return _decide(request, actions, to="operations:held_payment", payment_id=payment_id)
    found = get_object_or_404(Payment.objects.select_related("order"), pk=payment_id)
    return show(
        request,
        "held_payment.html",
        title=f"Payment {found.pk}",
        payment=found,
        told=held.what_was_reported(found) if found.is_held else None,
        notifications=found.notifications.order_by("received_at"),
        asked=Acceptance.objects.select_related("requested_by")
        .filter(payment=found, closed_at=None)
        .first(),
    )


@require_http_methods(["GET", "POST"])
@page_for("payments.view_payment")
def unmatched(request: HttpRequest, notification_id: int) -> HttpResponse:
    """Match a notification to its order, or say that none will come."""
    reason, order_name = request.POST.get("reason", ""), request.POST.get("order", "")
    actions: dict[str, tuple[str, Callable[[], Any], str]] = {
        "match": (
            "payments.match_notification",
            lambda: unmatched_notifications.match(
                notification_id=notification_id, order=order_name, reason=reason, user=request.user
            ),
            "Matched. The payment is held until it is accepted.",
        ),
        "dismiss": (
            "payments.match_notification",
            lambda: unmatched_notifications.dismiss(
                notification_id=notification_id, reason=reason, user=request.user
            ),
            "Dismissed: repeats of it are answered with 200.",
        ),
    }
    if request.method == "POST":
        return _decide(request, actions, to="operations:unmatched", notification_id=notification_id)
    return show(
        request,
        "unmatched.html",
        title=f"Notification {notification_id}",
        notification=get_object_or_404(PaymentNotification, pk=notification_id),
    )


@require_http_methods(["GET", "POST"])
@page_for("orders.view_order")
def order(request: HttpRequest, order_id: UUID) -> HttpResponse:
    """Release a held order."""
    reason = request.POST.get("reason", "")
    actions: dict[str, tuple[str, Callable[[], Any], str]] = {
        "release": (
            "orders.release_order",
            lambda: holds.release(order_id=order_id, reason=reason, actor=actor_of(request)),
            "Released: the order can be shipped.",
        ),
    }
    if request.method == "POST":
        return _decide(request, actions, to="operations:held_order", order_id=order_id)
    found = get_object_or_404(Order, pk=order_id)
    return show(request, "held_order.html", title=f"Order {found.number}", order=found)


def _decide(
    request: HttpRequest,
    actions: dict[str, tuple[str, Callable[[], Any], str]],
    *,
    to: str,
    **arguments: Any,
) -> HttpResponse:
    """Do the one action that the form names, if the person may."""
    permission, run, told = actions.get(request.POST.get("action", ""), ("", None, ""))
    if run is None or not request.user.has_perm(permission):
        raise PermissionDenied
    try:
        run()
    except _REFUSALS as error:
        return refuse(request, error, to=to, **arguments)
    messages.success(request, told)
    return redirect(to, **arguments)
