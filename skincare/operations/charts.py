"""Plots as SVG, drawn on the server: no script, no library, no other host."""

from collections.abc import Sequence
from typing import Final

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from skincare.operations.stats import Bucket

WIDTH: Final = 720
HEIGHT: Final = 130
_TOP, _BOTTOM, _LEFT = 16, 26, 52  # room for the labels, in the plot's own units

_NOTHING: Final = mark_safe('<p class="ops-empty">No event ended in this time.</p>')


def events_plot(buckets: Sequence[Bucket], *, title: str) -> SafeString:
    """Return bars of what ended in each bucket, per minute: done below, failed on top in red."""
    peak = max((_per_minute(b.done + b.failed, b) for b in buckets), default=0.0)
    if not buckets or not peak:
        return _NOTHING
    scale = (HEIGHT - _TOP - _BOTTOM) / peak
    step = (WIDTH - _LEFT) / len(buckets)
    bars = format_html_join("", "{}", ((_bar(n, b, step, scale),) for n, b in enumerate(buckets)))
    return format_html(
        '<svg class="ops-plot" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        '<line x1="{}" y1="{}" x2="{}" y2="{}" class="ops-axis"/>{}'
        '<text x="{}" y="{}" text-anchor="end">{}</text>'
        '<text x="{}" y="{}" text-anchor="end">0</text>'
        '<text x="{}" y="{}">{}</text><text x="{}" y="{}" text-anchor="end">now</text></svg>',
        *(WIDTH, HEIGHT, title),
        *(_LEFT, HEIGHT - _BOTTOM, WIDTH, HEIGHT - _BOTTOM, bars),
        *(_LEFT - 4, _TOP + 4, f"{peak:.3g}"),
        *(_LEFT - 4, HEIGHT - _BOTTOM),
        *(_LEFT, HEIGHT - 6, _clock(buckets[0])),
        *(WIDTH, HEIGHT - 6),
    )


def _bar(number: int, bucket: Bucket, step: float, scale: float) -> SafeString:
    x = f"{_LEFT + number * step:.1f}"
    width = f"{max(step - 1, 1):.1f}"
    done = _per_minute(bucket.done, bucket) * scale
    failed = _per_minute(bucket.failed, bucket) * scale
    floor = HEIGHT - _BOTTOM
    return format_html(
        "<g><title>{} · {} done, {} failed</title>"
        '<rect x="{}" y="{}" width="{}" height="{}" class="ops-done"/>'
        '<rect x="{}" y="{}" width="{}" height="{}" class="ops-failed"/></g>',
        *(_clock(bucket), bucket.done, bucket.failed),
        *(x, f"{floor - done:.1f}", width, f"{done:.1f}"),
        *(x, f"{floor - done - failed:.1f}", width, f"{failed:.1f}"),
    )


def _per_minute(count: int, bucket: Bucket) -> float:
    return count * 60 / bucket.seconds


def _clock(bucket: Bucket) -> str:
    return timezone.localtime(bucket.start).strftime("%H:%M")
