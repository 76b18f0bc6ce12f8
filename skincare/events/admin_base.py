"""What the admin pages of all apps share: read-only models, links between them, the held filter."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString

#: Characters of an id in a table.
SHORT: Final = 10


class ReadOnly:
    """What the application writes and people only read; for a page and for an inline."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class AtLeast(int):
    """A count that was not taken to its end; it reads so."""

    def __str__(self) -> str:
        return f"{int(self)} or more"


class BoundedPaginator(Paginator):
    """Counts no further than a person turns pages: an exact count of millions takes seconds."""

    MOST: Final = 2_000

    @cached_property
    def count(self) -> int:
        """Return how many rows there are, `MOST` at most."""
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        found = rows.order_by()[: self.MOST].count()
        return AtLeast(found) if found == self.MOST else found


class IndexedSearchMixin:
    """A search for whole terms, each lookup of `search_fields` by an index of its own.

    Django's own joins all lookups with OR, for which PostgreSQL uses no index, and "=" compares in
    upper case, which has no index. A field is not searched for what cannot be its value.
    """

    #: Rows of one lookup; whoever has more of them narrows the search.
    MOST_FOUND: Final = 1_000

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        found: set[Any] = set()
        for lookup, value in self.lookups_of(term):
            with suppress(ValidationError, ValueError):
                rows = queryset.model._default_manager.filter(**{lookup: value})
                found.update(rows.values_list("pk", flat=True)[: self.MOST_FOUND])
        return queryset.filter(pk__in=found), False

    def lookups_of(self, term: str) -> Iterator[tuple[str, str]]:
        """Yield each lookup with what is asked of it; order numbers are written in capitals."""
        for lookup in self.search_fields:  # type: ignore[attr-defined]
            yield lookup, term.upper() if lookup.endswith("number") else term


class ReadOnlyAdmin(ReadOnly, IndexedSearchMixin, admin.ModelAdmin):
    """A model that the application writes and people only read; it may have millions of rows."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # a count for each choice of each filter


def choices_filter(field: str, choices: Sequence[tuple[str, str]], title: str = "") -> type:
    """Return a filter for one of `choices` of a field; Django's own asks the table for them."""

    class ChoicesFilter(admin.SimpleListFilter):
        parameter_name = f"{field}__exact"

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return list(choices)

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            return queryset.filter(**{field: self.value()}) if self.value() else queryset

    ChoicesFilter.title = title or field.replace("_", " ")
    return ChoicesFilter


def held_mark(is_held: bool) -> SafeString | str:
    """Write whether something waits for a person: in words, because it is no success."""
    return format_html('<b class="ops-held">{}</b>', "held") if is_held else "-"


def money_cell(text: str) -> SafeString:
    """Write an amount so that amounts stand under each other."""
    return format_html('<span class="ops-money">{}</span>', text)


def short_id(identifier: object, url: str = "") -> SafeString:
    """Write an id by its beginning, with the whole of it in the title and on a copy button."""
    whole = str(identifier)
    shown = whole if len(whole) <= SHORT else f"{whole[: SHORT - 1]}…"
    text = format_html('<span title="{}">{}</span>', whole, shown)
    if url:
        text = format_html('<a href="{}" title="{}">{}</a>', url, whole, shown)
    return format_html(
        '<span class="ops-id">{}<button type="button" class="ops-copy" data-text="{}" '
        'aria-label="Copy {}">copy</button></span>',
        *(text, whole, whole),
    )


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
