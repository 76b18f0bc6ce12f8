"""The cost table of the README adds up, and follows from the prices that it names."""

import re

import pytest

from ecs.template import FOLDER

TEXT = (FOLDER / "README.md").read_text().split("## What it costs")[1].split("\n## ")[0]
ROWS = {
    name.strip("* "): int(cost.strip("* ").replace(",", ""))
    for name, cost in re.findall(r"^\| (.+?) \|.*\| ([*\d,]+) \|$", TEXT, re.MULTILINE)
}
HOURS = 730


def test_the_rows_add_up() -> None:
    assert sum(ROWS.values()) == 2 * ROWS["together"]


@pytest.mark.parametrize(
    ("row", "cost"),
    [
        ("API", 4 * HOURS * (0.25 * 0.05056 + 0.5 * 0.00553)),
        ("workers", 1.1 * HOURS * (0.5 * 0.05056 + 1 * 0.00553)),
        ("NAT gateway", HOURS * 0.059 + 300 * 0.059),
        ("load balancer", HOURS * (0.0252 + 1.3 * 0.008)),
        ("RDS db.t4g.medium, Multi-AZ, 100 GB", HOURS * 0.204 + 100 * 0.276),
        ("emails by SES", 6_080_000 / 1000 * 0.10),
    ],
)
def test_a_row_follows_from_its_prices(row: str, cost: float) -> None:
    assert ROWS[row] == pytest.approx(cost, abs=1)
