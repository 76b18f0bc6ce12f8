"""A file of code that came, changed or went is noticed, once."""

import os
from pathlib import Path

import pytest

from skincare.local.code_watch import CodeWatch


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "orders" / "templates").mkdir(parents=True)
    for name in ("orders/api.py", "orders/templates/receipt.html", "orders/notes.log"):
        (tmp_path / name).write_text("x")
    return tmp_path


def test_nothing_has_changed_at_first(project: Path) -> None:
    assert CodeWatch(project, ["orders"]).changed() == []


@pytest.mark.parametrize("name", ["orders/api.py", "orders/templates/receipt.html"])
def test_a_change_is_told_once(project: Path, name: str) -> None:
    watch = CodeWatch(project, ["orders"])

    os.utime(project / name, (1, 1))

    assert watch.changed() == [Path(name)]
    assert watch.changed() == []


def test_a_new_file_and_a_removed_one_are_changes(project: Path) -> None:
    watch = CodeWatch(project, ["orders"])

    (project / "orders" / "stock.py").touch()
    (project / "orders" / "api.py").unlink()

    assert watch.changed() == [Path("orders/api.py"), Path("orders/stock.py")]


def test_what_is_no_code_changes_unnoticed(project: Path) -> None:
    watch = CodeWatch(project, ["orders"])

    os.utime(project / "orders" / "notes.log", (1, 1))

    assert watch.changed() == []
