"""How the operator's pages write numbers."""

from datetime import datetime
from decimal import Decimal

from django import template
from django.utils import timezone

from orders.money import rupiah as written_rupiah
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
    if amount is None:
        return "no amount"
    whole = amount.to_integral_value()
    if whole != amount:
        return f"{amount.normalize():f} {currency}"
    return written_rupiah(int(whole)) if currency == "IDR" else f"{whole} {currency}"


@register.filter
def planned(outcome: DeadLetterOutcome) -> str:
    """Write what would become of a dead letter: redriven, discarded, or why it is left alone."""
    if outcome in (DeadLetterOutcome.REDRIVEN, DeadLetterOutcome.DISCARDED):
        return outcome.value
    return f"left alone: {outcome.value}"
