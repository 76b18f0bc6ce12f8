"""Migrations stay what they were on the day they were written."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MIGRATIONS = sorted(
    path.relative_to(ROOT)
    for app in ("orders", "payments", "skincare")
    for path in (ROOT / app).glob("**/migrations/[0-9]*.py")
)


@pytest.mark.parametrize("path", MIGRATIONS, ids=str)
def test_a_migration_runs_no_code_that_can_change_under_it(path: Path) -> None:
    imported: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            imported |= {name.name.partition(".")[0] for name in node.names}
        if isinstance(node, ast.ImportFrom):
            imported.add("skincare" if node.level else str(node.module).partition(".")[0])

    assert imported <= {"django", "uuid", "typing", "datetime", "decimal"}
