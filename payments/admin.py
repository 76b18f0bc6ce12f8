"""Plain, read-only admin of payments, refunds and notifications."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from payments.models import Acceptance, Payment, PaymentNotification, PaymentRefund
from skincare.events.admin_base import HeldFilter, ReadOnlyAdmin, list_link, object_link

PaymentRow = Acceptance | PaymentNotification | PaymentRefund


@admin.register(Payment)
class PaymentAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "order_link",
        "provider",
        "status",
        "amount_rupiah",
        "refunded_rupiah",
        "is_held",
        "decision",
        "created_at",
        "paid_at",
    ]
    list_filter = ["provider", "status", HeldFilter, "created_at"]
    list_select_related = ["order"]
    search_fields = ["=id", "=transaction_id", "=order__number", "=order__id"]
    show_full_result_count = False
    readonly_fields = [
        "decision",
        "order_link",
        "notifications_link",
        "refunds_link",
        "events_link",
    ]
    exclude = ["order"]

    @admin.display(description="order")
    def order_link(self, payment: Payment) -> SafeString | str:
        return object_link("admin:orders_order_change", payment.order_id, payment.order.number)

    @admin.display(boolean=True, description="held")
    def is_held(self, payment: Payment) -> bool:
        return payment.is_held

    @admin.display(description="decision")
    def decision(self, payment: Payment) -> SafeString | str:
        if not payment.is_held:
            return "-"
        return object_link("operations:held_payment", payment.pk, "decide on it")

    @admin.display(description="notifications")
    def notifications_link(self, payment: Payment) -> SafeString | str:
        page = "admin:payments_paymentnotification_changelist"
        return list_link(page, "payment__id__exact", payment.pk, "what the gateway said")

    @admin.display(description="refunds")
    def refunds_link(self, payment: Payment) -> SafeString | str:
        page = "admin:payments_paymentrefund_changelist"
        return list_link(page, "payment__id__exact", payment.pk, "what went back")

    @admin.display(description="events")
    def events_link(self, payment: Payment) -> SafeString | str:
        page = "admin:events_processedevent_changelist"
        return list_link(page, "q", payment.pk, "how its events were processed")


class PaymentRowAdmin(ReadOnlyAdmin):
    """What belongs to one payment, with links to it and to its order."""

    list_select_related = ["payment__order"]
    show_full_result_count = False
    readonly_fields = ["payment_link", "order_link"]
    exclude = ["payment"]

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        # The link from a payment to its rows.
        return lookup == "payment__id__exact" or super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    @admin.display(description="payment")
    def payment_link(self, row: PaymentRow) -> SafeString | str:
        if row.payment is None:
            return "-"
        return object_link("admin:payments_payment_change", row.payment_id, str(row.payment_id))

    @admin.display(description="order")
    def order_link(self, row: PaymentRow) -> SafeString | str:
        if row.payment is None:
            return "-"
        order = row.payment.order
        return object_link("admin:orders_order_change", order.pk, order.number)


@admin.register(PaymentRefund)
class PaymentRefundAdmin(PaymentRowAdmin):
    list_display = ["key", "payment_link", "order_link", "kind", "amount_rupiah", "refunded_at"]
    list_filter = ["kind", "payment__provider", "refunded_at"]
    search_fields = ["=key", "=payment__id", "=payment__transaction_id", "=payment__order__number"]


@admin.register(Acceptance)
class AcceptanceAdmin(PaymentRowAdmin):
    list_display = [
        "requested_at",
        "payment_link",
        "order_link",
        "held_reason",
        "requested_by",
        "accepted_by",
        "closed_at",
    ]
    list_filter = [("closed_at", admin.EmptyFieldListFilter), "requested_at"]
    list_select_related = ["payment__order", "requested_by", "accepted_by"]
    search_fields = ["=payment__id", "=payment__order__number", "=requested_by__username"]


@admin.register(PaymentNotification)
class PaymentNotificationAdmin(PaymentRowAdmin):
    readonly_fields = ["decision", "payment_link", "order_link"]
    list_display = [
        "received_at",
        "provider",
        "transaction_id",
        "status",
        "amount",
        "outcome",
        "decision",
        "reason",
        "payment_link",
        "order_link",
    ]
    list_filter = ["provider", "status", "outcome", "received_at"]
    search_fields = [
        "=transaction_id",
        "=order_reference",
        "=identity",
        "=payment__id",
        "=payment__order__number",
    ]

    @admin.display(description="decision")
    def decision(self, row: PaymentNotification) -> SafeString | str:
        if row.outcome != PaymentNotification.Outcome.UNMATCHED:
            return "-"
        return object_link("operations:unmatched", row.pk, "match or dismiss it")
