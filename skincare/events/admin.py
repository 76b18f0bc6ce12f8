"""Plain, read-only admin of the outbox and the processed events."""

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from skincare.events.models import OutboxEvent, ProcessedEvent


class ReadOnlyAdmin(admin.ModelAdmin):
    """A model that the application writes and people only read."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def _search_link(page: str, term: str, text: str) -> SafeString | str:
    """Return a link to an admin list that is searched for `term`."""
    return format_html('<a href="{}?q={}">{}</a>', reverse(page), term, text) if term else "-"


class EventAdmin(ReadOnlyAdmin):
    """What both tables of events share: search by ids, and links to order and payment."""

    search_fields = ["event_id__exact", "order_id__exact"]
    show_full_result_count = False

    @admin.display(description="order")
    def order(self, event: OutboxEvent | ProcessedEvent) -> SafeString | str:
        return _search_link("admin:orders_order_changelist", event.order_id, event.order_id)

    @admin.display(description="payment")
    def payment(self, event: Any) -> SafeString | str:
        payment_id = event.payload.get("payment_id", "")
        return _search_link("admin:payments_payment_changelist", payment_id, payment_id)


@admin.register(OutboxEvent)
class OutboxEventAdmin(EventAdmin):
    list_display = ["event_id", "event_type", "order", "created_at", "sent_at", "send_attempts"]
    list_filter = ["event_type", ("sent_at", admin.EmptyFieldListFilter), "created_at"]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return ["order", "payment", "processing"]

    @admin.display(description="processing")
    def processing(self, event: OutboxEvent) -> SafeString | str:
        return _search_link(
            "admin:events_processedevent_changelist", event.event_id, "how it was processed"
        )


@admin.register(ProcessedEvent)
class ProcessedEventAdmin(EventAdmin):
    list_display = [
        "event_id",
        "event_type",
        "order",
        "status",
        "attempts",
        "receive_count",
        "claimed_at",
        "finished_at",
    ]
    list_filter = ["status", "event_type", "claimed_at"]
    search_fields = ["event_id__exact", "order_id__exact", "payment_id__exact"]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return ["order", "payment", "sending"]

    @admin.display(description="sending")
    def sending(self, event: ProcessedEvent) -> SafeString | str:
        return _search_link(
            "admin:events_outboxevent_changelist", event.event_id, "how it was sent"
        )
