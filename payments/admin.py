"""Plain, read-only admin of payments, refunds and notifications."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString

from orders.money import reported, rupiah
from payments.hold_codes import Decision, HoldCode
from payments.models import (
    UNLISTED_OUTCOME,
    Acceptance,
    Hold,
    Payment,
    PaymentNotification,
    PaymentRefund,
    RefundRequest,
)
from payments.status import PaymentStatus
from skincare.events.admin_base import (
    HeldFilter,
    ReadOnlyAdmin,
    choices_filter,
    held_mark,
    list_link,
    money_cell,
    object_link,
    short_id,
)

PaymentRow = Acceptance | Hold | PaymentNotification | PaymentRefund | RefundRequest


@admin.register(Payment)
class PaymentAdmin(ReadOnlyAdmin):
    list_display = [
        "short",
        "order_link",
        "provider",
        "status",
        "amount",
        "refunded",
        "is_held",
        "decision",
        "created_at",
        "paid_at",
    ]
    list_display_links = ["status"]
    list_filter = [choices_filter("status", PaymentStatus.choices), HeldFilter]
    list_select_related = ["order"]
    search_fields = ["id", "transaction_id", "reference", "order__number", "order__id"]
    search_help_text = "the id of a payment, a transaction or an order, or an order's number"
    readonly_fields = [
        "decision",
        "order_link",
        "notifications_link",
        "refund_link",
        "refunds_link",
        "events_link",
    ]
    exclude = ["order"]

    @admin.display(description="order")
    def order_link(self, payment: Payment) -> SafeString | str:
        return object_link("admin:orders_order_change", payment.order_id, payment.order.number)

    @admin.display(description="payment", ordering="id")
    def short(self, payment: Payment) -> SafeString:
        return short_id(payment.pk, reverse("admin:payments_payment_change", args=[payment.pk]))

    @admin.display(description="amount", ordering="amount_rupiah")
    def amount(self, payment: Payment) -> SafeString:
        return money_cell(rupiah(payment.amount_rupiah))

    @admin.display(description="refunded", ordering="refunded_rupiah")
    def refunded(self, payment: Payment) -> SafeString:
        return money_cell(rupiah(payment.refunded_rupiah))

    @admin.display(description="held")
    def is_held(self, payment: Payment) -> SafeString | str:
        return held_mark(payment.is_held)

    @admin.display(description="decision")
    def decision(self, payment: Payment) -> SafeString | str:
        if not payment.is_held:
            return "-"
        return object_link("operations:held_payment", payment.pk, "decide on it")

    @admin.display(description="notifications")
    def notifications_link(self, payment: Payment) -> SafeString | str:
        page = "admin:payments_paymentnotification_changelist"
        return list_link(page, "payment__id__exact", payment.pk, "what the gateway said")

    @admin.display(description="refund")
    def refund_link(self, payment: Payment) -> SafeString | str:
        if not payment.is_paid:
            return "-"
        return object_link("operations:refund", payment.pk, "give money back")

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
    readonly_fields = ["payment_link", "order_link"]
    exclude = ["payment"]

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        # The link from a payment to its rows.
        return lookup == "payment__id__exact" or super().lookup_allowed(lookup, value, request)  # type: ignore[arg-type]

    @admin.display(description="payment")
    def payment_link(self, row: PaymentRow) -> SafeString | str:
        if row.payment is None:
            return "-"
        page = reverse("admin:payments_payment_change", args=[row.payment_id])
        return short_id(row.payment_id, page)

    @admin.display(description="order")
    def order_link(self, row: PaymentRow) -> SafeString | str:
        if row.payment is None:
            return "-"
        order = row.payment.order
        return object_link("admin:orders_order_change", order.pk, order.number)


@admin.register(PaymentRefund)
class PaymentRefundAdmin(PaymentRowAdmin):
    list_display = ["key", "payment_link", "order_link", "kind", "money", "refunded_at"]
    list_filter = [choices_filter("kind", PaymentRefund.Kind.choices)]
    search_fields = ["key", "payment__id", "payment__transaction_id", "payment__order__number"]

    @admin.display(description="amount", ordering="amount_rupiah")
    def money(self, refund: PaymentRefund) -> SafeString:
        return money_cell(rupiah(refund.amount_rupiah))


@admin.register(Acceptance)
class AcceptanceAdmin(PaymentRowAdmin):
    list_display = [
        "requested_at",
        "payment_link",
        "order_link",
        "decision",
        "held_reason",
        "requested_by",
        "accepted_by",
        "closed_at",
    ]
    sortable_by = [str(column) for column in list_display]  # people write its rows, one by one
    list_filter = [("closed_at", admin.EmptyFieldListFilter), "decision"]
    list_select_related = ["payment__order", "requested_by", "accepted_by"]
    search_fields = ["payment__id", "payment__order__number", "requested_by__username"]


@admin.register(RefundRequest)
class RefundRequestAdmin(PaymentRowAdmin):
    list_display = [
        "requested_at",
        "payment_link",
        "order_link",
        "money",
        "status",
        "reason",
        "requested_by",
        "agreed_by",
        "page",
    ]
    sortable_by = [str(column) for column in list_display]  # people write its rows, one by one
    list_filter = ["status"]
    list_select_related = ["payment__order", "requested_by", "agreed_by"]
    readonly_fields = ["page", "payment_link", "order_link"]
    search_fields = ["key", "payment__id", "payment__order__number", "requested_by__username"]

    @admin.display(description="amount", ordering="amount_rupiah")
    def money(self, request: RefundRequest) -> SafeString:
        return money_cell(rupiah(request.amount_rupiah))

    @admin.display(description="page")
    def page(self, request: RefundRequest) -> SafeString | str:
        return object_link("operations:refund", request.payment_id, "go on with it")


@admin.register(Hold)
class HoldAdmin(PaymentRowAdmin):
    list_display = [
        "opened_at",
        "code",
        "reason",
        "payment_link",
        "order_link",
        "closed_at",
        "closed_how",
        "closed_by",
    ]
    list_filter = [
        ("closed_at", admin.EmptyFieldListFilter),
        choices_filter("code", HoldCode.choices),
        choices_filter("closed_how", Decision.choices),
    ]
    list_select_related = ["order", "payment__order", "closed_by"]
    search_fields = ["payment__id", "order__number", "closed_by__username"]

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        return lookup == "order__id__exact" or super().lookup_allowed(lookup, value, request)

    @admin.display(description="order")
    def order_link(self, row: Hold) -> SafeString:  # type: ignore[override]
        return object_link("admin:orders_order_change", row.order_id, row.order.number)


@admin.register(PaymentNotification)
class PaymentNotificationAdmin(PaymentRowAdmin):
    readonly_fields = ["decision", "payment_link", "order_link"]
    list_display = [
        "received_at",
        "provider",
        "transaction",
        "status",
        "money",
        "outcome",
        "decision",
        "reason",
        "payment_link",
        "order_link",
    ]
    list_filter = [
        choices_filter("outcome", PaymentNotification.Outcome.choices, common=UNLISTED_OUTCOME)
    ]
    search_fields = [
        "transaction_id",
        "order_reference",
        "identity",
        "payment__id",
        "payment__order__number",
        "payment__order__id",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[PaymentNotification]:
        return super().get_queryset(request).defer("document")  # long, and in no list

    @admin.display(description="transaction", ordering="transaction_id")
    def transaction(self, row: PaymentNotification) -> SafeString | str:
        return short_id(row.transaction_id) if row.transaction_id else "-"

    @admin.display(description="amount", ordering="amount")
    def money(self, row: PaymentNotification) -> SafeString:
        return money_cell(reported(row.amount, row.currency))

    @admin.display(description="decision")
    def decision(self, row: PaymentNotification) -> SafeString | str:
        if row.outcome != PaymentNotification.Outcome.UNMATCHED:
            return "-"
        return object_link("operations:unmatched", row.pk, "match or dismiss it")
