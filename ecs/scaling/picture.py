"""One picture of a run: five plots over the same three days, as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ecs.scaling.traffic import DAYS

WIDTH, PLOT, GAP, LEFT, RIGHT, TOP = 960, 110, 34, 78, 20, 44
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
    inner = WIDTH - LEFT - RIGHT
    points = " ".join(
        f"{LEFT + n * inner / len(plot.values):.1f},{top + PLOT - value / most * PLOT:.1f}"
        for n, value in _thinned(plot.values)
    )
    days = [
        f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{top}" y2="{top + PLOT}" stroke="{GREY}"/>'
        f'<text x="{x + 4:.0f}" y="{top + PLOT + 13}" fill="#6b7280">day {day + 1}</text>'
        for day in range(DAYS)
        for x in [LEFT + day * inner / DAYS]
    ]
    return "\n".join(
        [
            *days,
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{top + PLOT}" y2="{top + PLOT}" '
            f'stroke="{INK}"/>',
            f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">'
            f"{_short(most)}{plot.unit}</text>",
            f'<text x="{LEFT - 6}" y="{top + PLOT}" text-anchor="end">0</text>',
            f'<text x="{WIDTH - RIGHT}" y="{top + 10}" text-anchor="end" '
            f'font-weight="600">{escape(plot.title)}</text>',
            f'<polyline points="{points}" fill="none" stroke="{BLUE}" stroke-width="1.5"/>',
        ]
    )


def _thinned(values: Sequence[float], most: int = 900) -> list[tuple[int, float]]:
    """The highest of each few minutes: peaks stay."""
    step = max(1, len(values) // most)
    return [(n, max(values[n : n + step])) for n in range(0, len(values), step)]


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
