"""Plain, read-only admin of the outbox and the processed events, with retries of the latter."""

from typing import Any, Final

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import truncatechars
from django.utils.safestring import SafeString

from skincare.events.admin_base import ReadOnlyAdmin, event_link, list_link
from skincare.events.exceptions import AlreadyFinished, StillInProgress, UnknownEvent
from skincare.events.manual_actions import replay
from skincare.events.models import OutboxEvent, ProcessedEvent

#: Characters of an error in the list; the event's own page has all of it.
ERROR_LENGTH: Final = 80
#: Refused events that a message names.
REFUSALS_SHOWN: Final = 5


class EventAdmin(ReadOnlyAdmin):
    """What both tables of events share: search by ids, and links to order and payment."""

    search_fields = ["event_id__exact", "order_id__exact"]
    show_full_result_count = False
    list_per_page = 50

    @admin.display(description="history")
    def history(self, event: OutboxEvent | ProcessedEvent) -> SafeString:
        return event_link(event.event_id, "history")

    @admin.display(description="order")
    def order(self, event: OutboxEvent | ProcessedEvent) -> SafeString | str:
        return list_link("admin:orders_order_changelist", "q", event.order_id, event.order_id)

    @admin.display(description="payment")
    def payment(self, event: Any) -> SafeString | str:
        payment_id = event.payload.get("payment_id", "")
        return list_link("admin:payments_payment_changelist", "q", payment_id, payment_id)


@admin.register(OutboxEvent)
class OutboxEventAdmin(EventAdmin):
    list_display = [
        "event_id",
        "event_type",
        "history",
        "order",
        "created_at",
        "sent_at",
        "send_attempts",
    ]
    list_filter = ["event_type", ("sent_at", admin.EmptyFieldListFilter), "created_at"]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return ["history", "order", "payment", "processing"]

    @admin.display(description="processing")
    def processing(self, event: OutboxEvent) -> SafeString | str:
        return list_link(
            "admin:events_processedevent_changelist", "q", event.event_id, "how it was processed"
        )


@admin.register(ProcessedEvent)
class ProcessedEventAdmin(EventAdmin):
    list_display = [
        "event_id",
        "state",
        "error",
        "history",
        "event_type",
        "attempts",
        "claimed_at",
    ]
    list_filter = [
        "status",
        "event_type",
        ("put_off_until", admin.EmptyFieldListFilter),
        "claimed_at",
    ]
    actions = ["retry"]
    search_fields = ["event_id__exact", "order_id__exact", "payment_id__exact"]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return ["history", "order", "payment", "sending"]

    @admin.display(description="sending")
    def sending(self, event: ProcessedEvent) -> SafeString | str:
        return list_link(
            "admin:events_outboxevent_changelist", "q", event.event_id, "how it was sent"
        )

    @admin.display(description="status", ordering="status")
    def state(self, event: ProcessedEvent) -> str:
        return event.state_display

    @admin.display(description="last error")
    def error(self, event: ProcessedEvent) -> str:
        return truncatechars(event.last_error, ERROR_LENGTH) or "-"

    def has_replay_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("events.replay_event")

    @admin.action(description="Retry the selected events", permissions=["replay"])
    def retry(self, request: HttpRequest, chosen: QuerySet[ProcessedEvent]) -> None:
        """Put unfinished events back on the queue; finished or held ones are named and left."""
        put = 0
        left: list[str] = []
        for event_id in chosen.values_list("event_id", flat=True):
            try:
                replay(event_id, actor=request.user.get_username())
            except AlreadyFinished:
                left.append(f"{event_id} is finished")
            except StillInProgress:
                left.append(f"a worker holds {event_id}")
            except UnknownEvent:
                left.append(f"{event_id} is gone")
            else:
                put += 1
        if put:
            messages.success(request, f"Put back on the queue: {put}. It is in the audit log.")
        if left:
            shown = "; ".join(left[:REFUSALS_SHOWN])
            messages.warning(request, f"Left alone: {len(left)}. {shown}")
