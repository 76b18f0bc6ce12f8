"""The README of the telemetry names what there is."""

import re
from pathlib import Path

from skincare.telemetry.metrics import NAMESPACE, UNITS
from tests.log_lines import FIELDS

ROOT = Path(__file__).parents[3]
README = (ROOT / "skincare" / "telemetry" / "README.md").read_text()


def section(title: str) -> str:
    return re.split(r"^## ", README, flags=re.MULTILINE)[
        ["Lines", "Metrics", "Errors", "Health"].index(title) + 1
    ]


def first_cells(text: str) -> set[str]:
    cells = re.findall(r"^\| (`[^|]*) \|", text, flags=re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def test_it_names_every_metric_and_no_other() -> None:
    assert first_cells(section("Metrics")) == set(UNITS)
    assert f"namespace `{NAMESPACE}`" in README


def test_it_names_the_fields_of_every_line() -> None:
    assert first_cells(section("Lines")) >= FIELDS


def test_every_event_that_it_names_is_logged_somewhere() -> None:
    events = section("Lines").partition("Events worth a look")[2]
    source = "".join(
        path.read_text()
        for folder in ("skincare", "orders", "payments")
        for path in (ROOT / folder).rglob("*.py")
    )

    named = first_cells(events)
    assert len(named) > 10
    assert [event for event in named if f'"{event}"' not in source] == []
