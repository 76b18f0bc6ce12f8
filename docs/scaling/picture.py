"""One picture of a run as SVG: plots over the three days, beside each the sale's half hour."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from docs.scaling.traffic import DAYS, SALE_OPENS

WIDTH, PLOT, GAP, LEFT, RIGHT, TOP = 1100, 110, 34, 78, 20, 44
DAYS_WIDTH, SALE_WIDTH = 560, 400
SALE_LEFT = WIDTH - RIGHT - SALE_WIDTH
#: How much of the sale is drawn again, wider; it begins ten minutes before.
SALE_MINUTES = 40
BLUE, GREY, INK = "#2563eb", "#e5e7eb", "#1f2937"


@dataclass(frozen=True)
class Plot:
    """A line over minutes."""

    title: str
    values: Sequence[float]
    unit: str = ""


def draw(title: str, plots: Sequence[Plot]) -> str:
    """Return the SVG document."""
    height = TOP + len(plots) * (PLOT + GAP) + 16
    body = [_plot(plot, TOP + n * (PLOT + GAP)) for n, plot in enumerate(plots)]
    style = f"font-family:system-ui,sans-serif;font-size:12px;fill:{INK}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'style="{style}" role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            f'<text x="{LEFT}" y="22" font-size="15" font-weight="600">{escape(title)}</text>',
            *body,
            "</svg>\n",
        ]
    )


def _plot(plot: Plot, top: int) -> str:
    most = max(plot.values) or 1.0
    days = [_mark(LEFT + day * DAYS_WIDTH / DAYS, top, f"day {day + 1}") for day in range(DAYS)]
    ticks = [
        _mark(_sale_x(minute), top, f"{minute:+d} min" if minute else "it opens")
        for minute in range(-10, SALE_MINUTES, 10)
    ]
    whole = [
        (LEFT + n * DAYS_WIDTH / len(plot.values), value) for n, value in _thinned(plot.values)
    ]
    opens = SALE_OPENS // 60
    sale = [
        (_sale_x(minute), plot.values[opens + minute]) for minute in range(-10, SALE_MINUTES + 1)
    ]
    return "\n".join(
        [
            *days,
            *ticks,
            *(
                f'<line x1="{left}" x2="{left + width}" y1="{top + PLOT}" y2="{top + PLOT}" '
                f'stroke="{INK}"/>'
                for left, width in ((LEFT, DAYS_WIDTH), (SALE_LEFT, SALE_WIDTH))
            ),
            f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">'
            f"{_short(most)}{plot.unit}</text>",
            f'<text x="{LEFT - 6}" y="{top + PLOT}" text-anchor="end">0</text>',
            f'<text x="{LEFT + DAYS_WIDTH}" y="{top + 10}" text-anchor="end" '
            f'font-weight="600">{escape(plot.title)}</text>',
            _line(whole, top, most),
            _line(sale, top, most),
        ]
    )


def _mark(x: float, top: int, text: str) -> str:
    return (
        f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{top}" y2="{top + PLOT}" stroke="{GREY}"/>'
        f'<text x="{x + 4:.0f}" y="{top + PLOT + 13}" fill="#6b7280">{text}</text>'
    )


def _sale_x(minute: int) -> float:
    return SALE_LEFT + (minute + 10) * SALE_WIDTH / (SALE_MINUTES + 10)


def _line(points: Sequence[tuple[float, float]], top: int, most: float) -> str:
    text = " ".join(f"{x:.1f},{top + PLOT - value / most * PLOT:.1f}" for x, value in points)
    return f'<polyline points="{text}" fill="none" stroke="{BLUE}" stroke-width="1.5"/>'


def _thinned(values: Sequence[float], most: int = 560) -> list[tuple[int, float]]:
    """The highest of each few minutes: peaks stay."""
    step = max(1, len(values) // most)
    return [(n, max(values[n : n + step])) for n in range(0, len(values), step)]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
