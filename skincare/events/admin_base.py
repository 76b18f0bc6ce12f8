"""What the admin pages of all apps share: read-only models, links between them, the held filter."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db.models import DateTimeField, Model, Q, QuerySet
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
        # In the list's order, for which there is an index: without one PostgreSQL may read the
        # table from its beginning for rows that are all at its end.
        found = rows[: self.MOST].count()
        return AtLeast(found) if found == self.MOST else found


#: Rows of one lookup; whoever has more of them narrows the search.
MOST_FOUND: Final = 1_000


class IndexedSearchMixin:
    """A search for whole terms, each lookup of `search_fields` by an index of its own.

    Django's own joins all lookups with OR, for which PostgreSQL uses no index, and "=" compares in
    upper case, which has no index. A field is not searched for what cannot be its value.
    """

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        found: set[Any] = set()
        for lookup, value in self.lookups_of(term):
            with suppress(ValidationError, ValueError):
                found.update(_found(queryset.model, lookup, value))
        return queryset.filter(pk__in=found), False

    def lookups_of(self, term: str) -> Iterator[tuple[str, str]]:
        """Yield each lookup with what is asked of it; order numbers are written in capitals."""
        for lookup in self.search_fields:  # type: ignore[attr-defined]
            yield lookup, term.upper() if lookup.endswith("number") else term


def _found(model: type[Model], lookup: str, value: str) -> list[Any]:
    """Return the keys of the rows that a lookup finds, over relations one table at a time.

    PostgreSQL cannot know whether a join will find anything: it may walk one table from its newest
    row to its oldest for what the other one does not have.
    """
    name, _, rest = lookup.partition("__")
    rows = model._default_manager.all()
    if not rest:
        rows = rows.filter(**{lookup: value})
    else:
        relation: Any = model._meta.get_field(name)
        keys = _found(relation.related_model, rest, value)
        if len(keys) == 1 and relation.concrete:
            rows = rows.filter(exactly(name, keys[0])).order_by(name, *_ordering(model))
        else:
            rows = rows.filter(**{f"{name}__in": keys})
    return list(rows.values_list("pk", flat=True)[:MOST_FOUND])


def exactly(field: str, value: Any) -> Q:
    """Return that a field has a value, for rows that are ordered by this field first.

    With "=" PostgreSQL takes the field out of the order. It may then walk the whole table in the
    rest of the order, because it does not know that only old rows have the value. So it reads the
    index that begins with the field.
    """
    return Q(**{f"{field}__gte": value, f"{field}__lte": value})


class ReadOnlyAdmin(ReadOnly, IndexedSearchMixin, admin.ModelAdmin):
    """A model that the application writes and people only read; it may have millions of rows."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # a count for each choice of each filter

    def get_ordering(self, request: HttpRequest) -> list[Any]:
        """Return the order of the rows; with a filter, that of the filter's index."""
        ordering = list(super().get_ordering(request)) or _ordering(self.model)
        for one in self.get_list_filter(request):
            if isinstance(one, type) and issubclass(one, ChoicesFilter) and one.uses_index(request):
                return [one.field, *ordering]
        return ordering

    def get_sortable_by(self, request: HttpRequest) -> list[Any]:
        """Return the columns that an index has in order; `sortable_by` is for tables that stay
        small.
        """
        if self.sortable_by is not None:
            return list(self.sortable_by)
        ordered = _in_order(self.model)
        return [
            column
            for column in map(str, self.get_list_display(request))
            if getattr(getattr(self, column, None), "admin_order_field", column) in ordered
        ]


def _ordering(model: type[Model]) -> list[Any]:
    return list(model._meta.ordering or ())


def _in_order(model: type[Model]) -> set[str]:
    """Return the fields that an index has in order, with few rows of each value: ids and times."""
    leading = {
        index.fields[0] for index in model._meta.indexes if index.fields and not index.condition
    }
    return {
        field.name
        for field in model._meta.concrete_fields
        if field.unique
        or (
            isinstance(field, DateTimeField)
            and not field.null
            and {field.name, f"-{field.name}"} & leading
        )
    }


class ChoicesFilter(admin.SimpleListFilter):
    """One of `choices` of a field, which an index has before the list's order."""

    field: str
    choices_of_field: Sequence[tuple[str, str]]
    #: Values that so many rows have that their index leaves them out.
    common: Sequence[str]

    @classmethod
    def uses_index(cls, request: HttpRequest) -> bool:
        """Whether the request asks for a value that the index has."""
        value = request.GET.get(str(cls.parameter_name))
        return bool(value) and value not in cls.common

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(self.choices_of_field)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if not value:
            return queryset
        if value in self.common:
            return queryset.filter(**{self.field: value})
        return queryset.filter(exactly(self.field, value))


def choices_filter(
    field: str, choices: Sequence[tuple[str, str]], *, common: Sequence[str] = ()
) -> type[ChoicesFilter]:
    """Return a filter for one of `choices` of a field; Django's own asks the table for them.

    `common`: values that are left out of the index of the field.
    """
    members = {
        "field": field,
        "parameter_name": f"{field}__exact",
        "title": field.replace("_", " "),
        "choices_of_field": choices,
        "common": common,
    }
    return type("FieldFilter", (ChoicesFilter,), members)


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
