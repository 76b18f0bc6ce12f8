"""The Makefile tells its targets, and what it needs that is not there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
OLD_PYTHON = f"""#!/bin/sh
exec {sys.executable} -c "import sys; sys.version_info = (3, 10, 4); sys.version = '3.10.4 (old)'
$2"
"""


def make(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy in which nothing is installed yet."""
    shutil.copy(PROJECT / "Makefile", tmp_path)
    shutil.copytree(PROJECT / "requirements", tmp_path / "requirements")
    return tmp_path


def test_make_alone_lists_every_target_with_what_it_does() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    listed = re.findall(r"^  make (\S+) +\S", make(PROJECT).stdout, re.MULTILINE)
    assert listed == phony[1].split()


def test_a_python_that_is_too_old_is_refused_with_the_remedy(clone: Path) -> None:
    python = clone / "python-3.10"
    python.write_text(OLD_PYTHON)
    python.chmod(0o755)

    setup = make(clone, "setup", f"PYTHON={python}")

    assert setup.returncode != 0
    assert "is Python 3.10.4; this project needs 3.11 or newer: try make PYTHON=" in setup.stderr
    assert not (clone / ".venv").exists()


def test_setup_has_nothing_to_do_until_the_requirements_change(clone: Path) -> None:
    # Times of our own: two files that are touched within a tick of the clock are equally old.
    for requirement in (clone / "requirements").iterdir():
        os.utime(requirement, (1_000_000, 1_000_000))
    for stamp in (".venv/bin/pip", ".venv/.ready", ".venv/sqs-server/.ready"):
        (clone / stamp).parent.mkdir(parents=True, exist_ok=True)
        (clone / stamp).touch()
        os.utime(clone / stamp, (2_000_000, 2_000_000))
    venv, sqs_server = ".venv/.ready", ".venv/sqs-server/.ready"
    assert make(clone, "--question", venv, sqs_server).returncode == 0

    (clone / "requirements" / "sqs-server.txt").touch()
    assert make(clone, "--question", venv).returncode == 0
    assert make(clone, "--question", sqs_server).returncode == 1

    (clone / "requirements" / "dev.txt").touch()
    assert make(clone, "--question", venv).returncode == 1
