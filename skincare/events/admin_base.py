"""What the admin pages of all apps share: read-only models, links between them, the held filter."""

from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString


class ReadOnly:
    """What the application writes and people only read; for a page and for an inline."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class ReadOnlyAdmin(ReadOnly, admin.ModelAdmin):
    """A model that the application writes and people only read."""


class ReadOnlyInline(ReadOnly, admin.TabularInline):
    """Rows of another model's page that the application writes and people only read."""

    extra = 0
    can_delete = False


class HeldFilter(admin.SimpleListFilter):
    """What a person must look at: rows whose `held_reason` is not empty."""

    title = "held"
    parameter_name = "held"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "held for a person"), ("no", "not held")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "yes":
                return queryset.exclude(held_reason="")
            case "no":
                return queryset.filter(held_reason="")
        return queryset


def object_link(page: str, pk: Any, text: str) -> SafeString:
    """Return a link to the page of one object."""
    return format_html('<a href="{}">{}</a>', reverse(page, args=[pk]), text)


def list_link(page: str, query: str, value: Any, text: str) -> SafeString | str:
    """Return a link to an admin list with one `query` parameter; "-" where there is no value."""
    if not value:
        return "-"
    return format_html('<a href="{}?{}={}">{}</a>', reverse(page), query, value, text)


def event_link(event_id: str, text: str = "") -> SafeString:
    """Return a link to an event's own page."""
    return object_link("operations:event", event_id, text or event_id)
