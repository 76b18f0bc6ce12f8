"""Plain, read-only admin of the outbox and the processed events, with retries of the latter."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, ClassVar, Final

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import truncatechars
from django.urls import reverse
from django.utils.safestring import SafeString

from skincare.events.admin_base import (
    ReadOnlyAdmin,
    choices_filter,
    event_link,
    list_link,
    short_id,
)
from skincare.events.exceptions import AlreadyFinished, StillInProgress, UnknownEvent
from skincare.events.manual_actions import replay
from skincare.events.models import UNLISTED_STATUS, OutboxEvent, ProcessedEvent
from skincare.events.schema import EVENT_TYPES

#: Characters of an error in the list; the event's own page has all of it.
ERROR_LENGTH: Final = 80
#: Refused events that a message names.
REFUSALS_SHOWN: Final = 5


_Status = ProcessedEvent.Status


class EventAdmin(ReadOnlyAdmin):
    """What both tables of events share: search by ids, and links to order and payment."""

    search_fields = ["event_id", "order_id"]
    search_help_text = "the id of an event or an order, or an order's number"
    list_per_page = 50
    #: Finds an order's id by what people call the order; who knows orders sets it.
    order_id_of: ClassVar[Callable[[str], str | None] | None] = None

    def lookups_of(self, term: str) -> Iterator[tuple[str, str]]:
        """Also by the number of the order, which these tables do not have."""
        yield from super().lookups_of(term)
        find = type(self).order_id_of
        if find is not None and (order_id := find(term)):
            yield "order_id", order_id

    @admin.display(description="event", ordering="event_id")
    def event(self, event: OutboxEvent | ProcessedEvent) -> SafeString:
        return short_id(event.event_id, reverse("operations:event", args=[event.event_id]))

    @admin.display(description="error")
    def error(self, event: OutboxEvent | ProcessedEvent) -> str:
        return truncatechars(event.last_error, ERROR_LENGTH) or "-"

    @admin.display(description="history")
    def history(self, event: OutboxEvent | ProcessedEvent) -> SafeString:
        return event_link(event.event_id, "history")

    @admin.display(description="order")
    def order(self, event: OutboxEvent | ProcessedEvent) -> SafeString | str:
        page = reverse("admin:orders_order_changelist")
        return short_id(event.order_id, f"{page}?q={event.order_id}")

    @admin.display(description="payment")
    def payment(self, event: Any) -> SafeString | str:
        payment_id = event.payload.get("payment_id", "")
        return list_link("admin:payments_payment_changelist", "q", payment_id, payment_id)


@admin.register(OutboxEvent)
class OutboxEventAdmin(EventAdmin):
    list_display = [
        "event",
        "event_type",
        "order",
        "created_at",
        "sent_at",
        "send_attempts",
        "next_try_at",
        "error",
    ]
    list_display_links = ["event_type"]
    list_filter = [("sent_at", admin.EmptyFieldListFilter)]

    @admin.display(description="next try at")
    def next_try_at(self, event: OutboxEvent) -> datetime | str:
        return event.next_attempt_at if event.sent_at is None else "-"

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
        "event",
        "state",
        "event_type",
        "order",
        "attempts",
        "claimed_at",
        "next_try_at",
        "error",
    ]
    list_display_links = ["state"]
    list_filter = [
        choices_filter("status", _Status.choices, common=UNLISTED_STATUS),
        choices_filter("event_type", [(one, one) for one in EVENT_TYPES]),
        ("put_off_until", admin.EmptyFieldListFilter),
    ]
    actions = ["retry"]
    search_fields = ["event_id", "order_id", "payment_id"]
    search_help_text = "the id of an event, an order or a payment, or an order's number"

    @admin.display(description="next try at")
    def next_try_at(self, event: ProcessedEvent) -> datetime | str:
        """When its email is tried again, or when another worker may take it over."""
        if event.is_finished:
            return "-"
        return event.put_off_until or event.lease_expires_at or "-"

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
