"""Puts what follows from the measurement into the files that repeat it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from docs.scaling import measured
from ecs.template import FOLDER

README: Final = Path(__file__).resolve().parent / "README.md"
TEMPLATE: Final = FOLDER / "scaling.yaml"


def targets() -> str:
    """Return the mapping PerTask of scaling.yaml, a line for each size that a worker may have."""
    return "".join(
        f'    "{size}": {{Backlog: {measured.backlog_per_task(size)}, '
        f"Arrivals: {measured.arrivals_per_task(size)}}}\n"
        for size in measured.SIZES
    )


def write(tables: Mapping[str, str]) -> None:
    """Write the targets into scaling.yaml, and each table between its marks in README.md."""
    template = TEMPLATE.read_text()
    lines = r'(?<=\n  PerTask:\n)(?:    "\d+": .*\n)+'
    TEMPLATE.write_text(re.sub(lines, targets(), template))
    text = README.read_text()
    for name, table in tables.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = text.partition(start)
        text = before + start + table + "\n" + end + rest.partition(end)[2]
    README.write_text(text)
