"""The audit log: what people did by hand, in the admin, the pages and the commands."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from skincare.events.admin import ReadOnlyAdmin

admin.site.site_url = None  # there is no page of the shop here to "view on site"


@admin.register(LogEntry)
class AuditLogAdmin(ReadOnlyAdmin):
    """Django's own log of the admin; the services write into it too. Nobody changes it."""

    list_display = ["action_time", "user", "what", "on", "content_type"]
    list_filter = ["action_time", ("user", admin.RelatedOnlyFieldListFilter)]
    list_select_related = ["user", "content_type"]
    search_fields = ["=object_id", "object_repr", "change_message"]
    search_help_text = "an event's id, an order's number, a reason"
    show_full_result_count = False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("events.view_operations")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    @admin.display(description="what")
    def what(self, entry: LogEntry) -> str:
        return entry.get_change_message() or entry.get_action_flag_display()

    @admin.display(description="on")
    def on(self, entry: LogEntry) -> SafeString | str:
        page = entry.get_admin_url()
        if not page:
            return entry.object_repr
        return format_html('<a href="{}">{}</a>', page, entry.object_repr)
