"""Plain admin of the shop: products can be edited, what happened can only be read."""

from typing import Any

from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString

from orders.models import (
    UNLISTED_KIND,
    UNLISTED_TO_STATUS,
    CheckoutRequest,
    Order,
    OrderLine,
    OrderTransition,
    Product,
    StockMovement,
)
from orders.money import rupiah
from orders.search import refresh_search
from orders.status import OrderStatus
from skincare.events.admin_base import (
    HeldFilter,
    ReadOnlyAdmin,
    ReadOnlyInline,
    choices_filter,
    held_mark,
    list_link,
    money_cell,
    object_link,
    short_id,
)


class OrderLineInline(ReadOnlyInline):
    model = OrderLine
    fields = ["sku", "name", "quantity", "unit_price"]
    readonly_fields = ["unit_price"]

    @admin.display(description="unit price")
    def unit_price(self, line: OrderLine) -> SafeString:
        return money_cell(rupiah(line.unit_price_rupiah))


class OrderTransitionInline(ReadOnlyInline):
    model = OrderTransition
    fields = ["created_at", "from_status", "to_status", "reason", "event_id"]
    readonly_fields = ["created_at"]


class StockMovementInline(ReadOnlyInline):
    model = StockMovement
    fields = ["created_at", "product", "kind", "stock_delta", "reserved_delta", "event_id"]
    readonly_fields = ["created_at"]


@admin.register(Order)
class OrderAdmin(ReadOnlyAdmin):
    list_display = [
        "number",
        "status",
        "total",
        "payment_method",
        "held",
        "decision",
        "created_at",
        "paid_at",
    ]
    list_filter = [choices_filter("status", OrderStatus.choices), HeldFilter]
    search_fields = [
        *("number", "id", "email", "payments__id", "payments__transaction_id"),
        *("movements__event_id", "transitions__event_id"),
    ]
    search_help_text = (
        "an order's number or id, the buyer's email, or the id of a payment, a transaction or an "
        "event"
    )
    readonly_fields = ["decision", "shipping", "payments", "events", "outbox"]
    inlines = [OrderLineInline, OrderTransitionInline, StockMovementInline]

    @admin.display(description="total", ordering="total_rupiah")
    def total(self, order: Order) -> SafeString:
        return money_cell(rupiah(order.total_rupiah))

    @admin.display
    def held(self, order: Order) -> SafeString | str:
        return held_mark(order.is_held)

    @admin.display
    def decision(self, order: Order) -> SafeString | str:
        if not order.is_held:
            return "-"
        return object_link("operations:held_order", order.pk, "decide on it")

    @admin.display
    def shipping(self, order: Order) -> SafeString:
        return object_link("operations:ship", order.pk, "ship it, or take its goods back")

    @admin.display
    def payments(self, order: Order) -> SafeString | str:
        page = "admin:payments_payment_changelist"
        return list_link(page, "order__id__exact", order.pk, "payments of this order")

    @admin.display
    def events(self, order: Order) -> SafeString | str:
        page = "admin:events_processedevent_changelist"
        return list_link(page, "q", order.pk, "how its events were processed")

    @admin.display
    def outbox(self, order: Order) -> SafeString | str:
        page = "admin:events_outboxevent_changelist"
        return list_link(page, "q", order.pk, "how its events were sent")


class EventOfOrderAdmin(ReadOnlyAdmin):
    """Rows that an event wrote for an order: search by both, links to both."""

    list_select_related = ["order"]

    @admin.display(description="order")
    def of_order(self, row: Any) -> SafeString | str:
        if row.order is None:
            return "-"
        return object_link("admin:orders_order_change", row.order_id, row.order.number)

    @admin.display(description="event")
    def event(self, row: Any) -> SafeString | str:
        return short_id(row.event_id, reverse("operations:event", args=[row.event_id]))


@admin.register(StockMovement)
class StockMovementAdmin(EventOfOrderAdmin):
    list_display = [
        "created_at",
        "product",
        "kind",
        "stock_delta",
        "reserved_delta",
        "of_order",
        "event",
    ]
    list_filter = [choices_filter("kind", StockMovement.Kind.choices, common=UNLISTED_KIND)]
    list_select_related = ["order", "product"]
    search_fields = ["event_id", "order__number", "order__id", "product__sku"]
    readonly_fields = ["of_order", "event"]


@admin.register(OrderTransition)
class OrderTransitionAdmin(EventOfOrderAdmin):
    list_display = ["created_at", "of_order", "from_status", "to_status", "reason", "event"]
    list_filter = [choices_filter("to_status", OrderStatus.choices, common=UNLISTED_TO_STATUS)]
    search_fields = ["event_id", "order__number", "order__id"]
    readonly_fields = ["of_order", "event"]


@admin.register(OrderLine)
class OrderLineAdmin(ReadOnlyAdmin):
    list_display = ["order", "sku", "name", "quantity", "unit_price"]
    list_select_related = ["order"]
    search_fields = ["order__number", "order__id", "product__sku"]

    @admin.display(description="unit price", ordering="unit_price_rupiah")
    def unit_price(self, line: OrderLine) -> SafeString:
        return money_cell(rupiah(line.unit_price_rupiah))


@admin.register(CheckoutRequest)
class CheckoutRequestAdmin(ReadOnlyAdmin):
    list_display = ["order", "scope", "key", "created_at"]
    list_select_related = ["order"]
    search_fields = ["key", "order__number", "order__id"]


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):
    """Texts, price and visibility. The numbers of the stock move only with a StockMovement."""

    list_display = ["sku", "name", "category", "price", "stock", "reserved", "is_active"]
    list_filter = ["is_active", "category", "search_in_stock"]
    search_fields = ["sku", "name"]
    readonly_fields = ["stock", "reserved", "search_refreshed_at", "created_at", "movements"]

    @admin.display(description="price", ordering="price_rupiah")
    def price(self, product: Product) -> SafeString:
        return money_cell(rupiah(product.price_rupiah))

    @admin.display
    def movements(self, product: Product) -> SafeString | str:
        if product.pk is None:
            return "-"
        page = "admin:orders_stockmovement_changelist"
        return list_link(page, "q", product.sku, "stock movements of this product")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """The category may be left out; it has a default."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and db_field.name == "category":
            field.required = False
        return field

    def save_model(
        self, request: HttpRequest, obj: Product, form: "ModelForm[Product]", change: bool
    ) -> None:
        """Save only what the form changed: stock moves while people type."""
        if change:
            obj.save(update_fields=form.changed_data)
        else:
            obj.save()
        refresh_search([obj.pk])
