"""Goods: what goes out for an order, what comes back, and what comes in."""

from datetime import datetime
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from orders import goods
from orders.exceptions import (
    AlreadyReceived,
    CannotBeShipped,
    InvalidDelivery,
    NotShipped,
    OrderNotFound,
    ProductNotFound,
)
from orders.models import Order, StockMovement
from payments import restocking, shipping
from skincare.events.exceptions import InvalidMoment, ReasonMissing
from skincare.operations.base_view import actor_of, page_for, refuse, show
from skincare.operations.forms import DeliveryForm, FormRefused, ShippingForm, read

_REFUSALS = (
    AlreadyReceived,
    CannotBeShipped,
    FormRefused,
    InvalidDelivery,
    InvalidMoment,
    NotShipped,
    OrderNotFound,
    ProductNotFound,
    ReasonMissing,
)
_SHOWN = 20


@require_http_methods(["GET", "POST"])
@page_for("orders.view_order")
def ship(request: HttpRequest, order_id: UUID) -> HttpResponse:
    """Record that an order was shipped, or that its goods came back."""
    if request.method == "POST":
        if not request.user.has_perm("orders.ship_order"):
            raise PermissionDenied
        try:
            done = _ship_or_take_back(request, order_id)
        except _REFUSALS as error:
            return refuse(request, error, to="operations:ship", order_id=order_id)
        messages.success(request, done)
        return redirect("operations:ship", order_id=order_id)
    order = get_object_or_404(Order.objects.prefetch_related("lines"), pk=order_id)
    return show(
        request,
        "ship.html",
        title=f"Shipping of {order.number}",
        order=order,
        now=timezone.localtime(),
    )


def _ship_or_take_back(request: HttpRequest, order_id: UUID) -> str:
    form = read(ShippingForm, request.POST)
    if form["action"] == "take_back":
        shipping.take_back(order_id=order_id, reason=form["reason"], actor=actor_of(request))
        return "The goods are back."
    shipping.ship(
        order_id=order_id,
        shipped_at=_moment(form["shipped_at"]),
        tracking_number=form["tracking_number"],
        actor=actor_of(request),
    )
    return "Shipped."


@require_http_methods(["GET", "POST"])
@page_for("orders.view_stockmovement")
def receive(request: HttpRequest) -> HttpResponse:
    """Book goods that came in."""
    if request.method == "POST":
        if not request.user.has_perm("orders.receive_goods"):
            raise PermissionDenied
        try:
            form = read(DeliveryForm, request.POST)
            movement = goods.receive(
                sku=form["sku"],
                pieces=_pieces(form["pieces"]),
                delivery=form["delivery"],
                actor=actor_of(request),
            )
        except _REFUSALS as error:
            return refuse(request, error, to="operations:receive_goods")
        messages.success(request, f"{movement.stock_delta} pieces of {movement.product.sku}.")
        if served := restocking.serve_out_of_stock():
            messages.success(request, f"{served} order(s) that waited for goods have them now.")
        return redirect("operations:receive_goods")
    deliveries = StockMovement.objects.filter(kind=StockMovement.Kind.RECEIVE)
    return show(
        request,
        "receive_goods.html",
        title="Goods that came in",
        deliveries=deliveries.select_related("product").order_by("-id")[:_SHOWN],
    )


def _moment(text: str) -> datetime:
    """Return the time of a form, which is the shop's. Raises `InvalidMoment`."""
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else timezone.make_aware(moment)
    except (ValueError, OverflowError):
        raise InvalidMoment("the time is written like 2026-11-11T14:30") from None


def _pieces(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InvalidDelivery("its pieces must be a whole number")
    return int(text)
