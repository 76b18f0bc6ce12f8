"""The release before this one: its code, taken from the history."""

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from skincare.local.stack import PROJECT

#: Set it to what is deployed, after each release; then `python tests/release/record.py
#: tests/release/samples/NAME.json` in that commit's tree.
COMMIT = "1b3a076913150cfa056e2672cdbdcdf4cd1d1cbb"


def previous_release(folder: Path) -> Path:
    """Put the tree of the release before into a folder and return it.

    Skips the test where the history is not here: in a shallow clone, or in no clone at all.
    """
    archive = folder / "previous.tar"
    done = subprocess.run(
        ["git", "archive", "--output", archive, COMMIT],
        cwd=PROJECT,
        env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(
            f"the history has no commit {COMMIT[:7]}, the release before "
            "(a shallow clone? git fetch --unshallow)"
        )
    tree = folder / "previous"
    with tarfile.open(archive) as tar:
        tar.extractall(tree, filter="data")
    return tree
