"""How the operator's pages write numbers."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from django import template
from django.http import QueryDict
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from orders.money import reported
from orders.money import rupiah as written_rupiah
from skincare.events.admin_base import short_id
from skincare.operations.dead_letter_actions import DeadLetterOutcome

register = template.Library()


@register.filter
def age(seconds: float) -> str:
    """Write a time span: 350 ms, 12.3 s, 4 min, 2.5 h, 3.1 days."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"


@register.filter
def to_the_millisecond(moment: datetime) -> str:
    """Write a moment in the shop's time zone: 30 Nov 2026 10:20:05.123."""
    local = timezone.localtime(moment)
    return f"{local.day} {local:%b %Y %H:%M:%S}.{local.microsecond // 1000:03}"


@register.filter
def clock(moment: str) -> str:
    """Write the time of day of an RFC 3339 moment, in the shop's time zone, to the second."""
    try:
        return timezone.localtime(datetime.fromisoformat(moment)).strftime("%H:%M:%S")
    except ValueError:
        return moment


@register.filter
def rupiah(amount: int) -> str:
    """Write whole rupiah as the shop does."""
    return written_rupiah(amount)


@register.filter
def told(amount: Decimal | None, currency: str) -> str:
    """Write an amount as a gateway told it, without the zeros that our column adds."""
    return reported(amount, currency)


@register.filter
def planned(outcome: DeadLetterOutcome) -> str:
    """Write what would become of a dead letter: redriven, discarded, or why it is left alone."""
    if outcome in (DeadLetterOutcome.REDRIVEN, DeadLetterOutcome.DISCARDED):
        return outcome.value
    return f"left alone: {outcome.value}"


@register.filter
def get(mapping: Mapping[str, object], key: str) -> object:
    """Return the value of a key that is only known when the page is made."""
    return mapping.get(key, "")


register.simple_tag(short_id, name="short")


@register.simple_tag
def query(asked: QueryDict, **changes: object) -> str:
    """Return the page's query with some parameters changed; None takes one away."""
    changed = asked.copy()
    for name, value in changes.items():
        changed.pop(name, None)
        if value is not None:
            changed[name] = str(value)
    return changed.urlencode()


@register.simple_tag
def sorter(asked: QueryDict, name: str, title: str) -> SafeString:
    """Write a column's title as the link that sorts by it; a second click turns it round."""
    now = asked.get("sort", "-sent")
    wanted = f"-{name}" if now == name else name
    arrow = {name: " ↑", f"-{name}": " ↓"}.get(now, "")
    return format_html('<a href="?{}">{}{}</a>', query(asked, sort=wanted, page=None), title, arrow)
