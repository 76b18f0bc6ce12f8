"""How the operator's pages write numbers."""

from django import template

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
