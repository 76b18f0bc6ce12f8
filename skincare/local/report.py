"""The demonstration's table: each case, what had to happen, what happened."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    case: str
    had_to: str
    happened: str

    @property
    def is_right(self) -> bool:
        return self.had_to == self.happened


def table(rows: list[Row]) -> str:
    """Return the rows under a heading, in aligned columns, each with its verdict."""
    cells = [("case", "had to happen", "happened", "")]
    cells += [(r.case, r.had_to, r.happened, "ok" if r.is_right else "WRONG") for r in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(3)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)
