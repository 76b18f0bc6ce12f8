"""The audit log: what people did by hand, in the admin, the pages and the commands."""

import json
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from skincare.events.admin_base import ReadOnlyAdmin

admin.site.site_url = None  # there is no page of the shop here to "view on site"


@admin.register(LogEntry)
class AuditLogAdmin(ReadOnlyAdmin):
    """Django's own log of the admin; the services write into it too. Nobody changes it."""

    list_display = ["action_time", "who", "what", "on", "details"]
    sortable_by = [str(column) for column in list_display]  # people write its rows
    list_filter = ["action_time", ("user", admin.RelatedOnlyFieldListFilter)]
    list_select_related = ["user", "content_type"]
    search_fields = ["=object_id", "object_repr", "change_message"]
    search_help_text = "an event's id, an order's number, a reason"
    # What people did by hand is little, and found by a word of its reason.
    get_search_results = admin.ModelAdmin.get_search_results

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("events.view_operations")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    @admin.display(description="who", ordering="user")
    def who(self, entry: LogEntry) -> str:
        """Return the user, or the name that a command was given."""
        return str(_parts(entry)[1].get("by") or entry.user)

    @admin.display(description="what")
    def what(self, entry: LogEntry) -> str:
        return _parts(entry)[0]

    @admin.display(description="on")
    def on(self, entry: LogEntry) -> SafeString | str:
        page = entry.get_admin_url()
        if not page:
            return entry.object_repr
        return format_html('<a href="{}">{}</a>', page, entry.object_repr)

    @admin.display(description="details")
    def details(self, entry: LogEntry) -> str:
        given = _parts(entry)[1].items()
        return "; ".join(f"{name}: {value}" for name, value in given if name != "by") or "-"


def _parts(entry: LogEntry) -> tuple[str, dict[str, Any]]:
    """Split an entry of `skincare.events.audit` into action and details; others have none."""
    action, _, details = entry.change_message.partition(": ")
    try:
        return action, dict(json.loads(details))
    except ValueError:
        return entry.get_change_message() or entry.get_action_flag_display(), {}
