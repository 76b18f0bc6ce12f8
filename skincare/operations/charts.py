"""Plots as SVG, drawn on the server: no script, no library, no other host."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from skincare.operations.stats import Bucket

WIDTH: Final = 720
HEIGHT: Final = 130
_TOP, _BOTTOM, _LEFT = 16, 26, 52  # room for the labels, in the plot's own units

_NOTHING: Final = mark_safe('<p class="ops-empty">No event ended in this time.</p>')


@dataclass(frozen=True)
class Series:
    """What one colour of the bars stands for: its name, its CSS class, a value for each bucket."""

    name: str
    style: str
    values: Sequence[float]


def events_plot(buckets: Sequence[Bucket], *, title: str) -> SafeString:
    """Return bars of what ended in each bucket, per minute: done below, failed on top in red."""
    if not any(bucket.done + bucket.failed for bucket in buckets):
        return _NOTHING
    series = [
        Series("done", "ops-done", [b.done * 60 / b.seconds for b in buckets]),
        Series("failed", "ops-failed", [b.failed * 60 / b.seconds for b in buckets]),
    ]
    tips = [f"{_clock(b)} · {b.done} done, {b.failed} failed" for b in buckets]
    return _plot(buckets, series, tips, title=title, unit="per minute")


def waits_plot(buckets: Sequence[Bucket], *, title: str) -> SafeString:
    """Return bars of the longest time that an event waited for a worker, by when it was done."""
    if not any(bucket.done for bucket in buckets):
        return mark_safe("")  # the plot above says that there is nothing
    series = [Series("longest wait for a worker", "ops-waited", [b.waited for b in buckets])]
    tips = [f"{_clock(b)} · {b.waited:.1f} s" for b in buckets]
    return _plot(buckets, series, tips, title=title, unit="seconds")


def _plot(
    buckets: Sequence[Bucket],
    series: Sequence[Series],
    tips: Sequence[str],
    *,
    title: str,
    unit: str,
) -> SafeString:
    sums = [sum(values) for values in zip(*(one.values for one in series), strict=True)]
    peak = max(math.ceil(max(sums)), 1)  # a whole number on the axis
    floor = HEIGHT - _BOTTOM
    scale = (floor - _TOP) / peak
    step = (WIDTH - _LEFT) / len(buckets)
    bars = format_html_join(
        "",
        "<g><title>{}</title>{}</g>",
        ((tip, _bar(number, series, step, scale)) for number, tip in enumerate(tips)),
    )
    legend = format_html_join(
        "", '<span><i class="{}"></i>{}</span>', ((one.style, one.name) for one in series)
    )
    return format_html(
        '<figure class="ops-figure"><svg class="ops-plot" viewBox="0 0 {} {}" role="img" '
        'aria-label="{}"><line x1="{}" y1="{}" x2="{}" y2="{}" class="ops-axis"/>{}'
        '<text x="{}" y="{}" text-anchor="end">{}</text>'
        '<text x="{}" y="{}" text-anchor="end">0</text>'
        '<text x="{}" y="{}">{}</text><text x="{}" y="{}" text-anchor="end">now</text></svg>'
        '<figcaption class="ops-legend">{}<span class="ops-quiet">{}</span></figcaption></figure>',
        *(WIDTH, HEIGHT, title),
        *(_LEFT, floor, WIDTH, floor, bars),
        *(_LEFT - 4, _TOP + 4, peak),
        *(_LEFT - 4, floor),
        *(_LEFT, HEIGHT - 6, _clock(buckets[0])),
        *(WIDTH, HEIGHT - 6),
        *(legend, unit),
    )


def _bar(number: int, series: Sequence[Series], step: float, scale: float) -> SafeString:
    """Return the rectangles of one bucket, one upon the other."""
    x = f"{_LEFT + number * step:.1f}"
    width = f"{max(step - 1, 1):.1f}"
    rectangles = []
    top: float = HEIGHT - _BOTTOM
    for one in series:
        height = one.values[number] * scale
        top -= height
        rectangles.append((x, f"{top:.1f}", width, f"{height:.1f}", one.style))
    shape = '<rect x="{}" y="{}" width="{}" height="{}" class="{}"/>'
    return format_html_join("", shape, rectangles)


def _clock(bucket: Bucket) -> str:
    return timezone.localtime(bucket.start).strftime("%H:%M")
