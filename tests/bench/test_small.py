"""The benchmark itself, with next to nothing to do: every part ends with its table."""

import subprocess
import sys

import pytest

from tests.bench.subject import ROOT

PARTS = {
    "no-op": "Events per second, handler that does nothing",
    "shop": "Events per second, the shop's handler",
    "api": "The API: two processes",
    "hot": "Checkouts of one product and of twenty",
    "inline": "Checkout with its effects and two emails",
    "relay": "One relay and a backlog of",
    "large": "The operator's pages",
    "memory": "Memory of the worker",
}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_part_of_the_benchmark_measures_something() -> None:
    only = ["--only", "deleting by ten"]  # the others differ in what is installed
    ended = subprocess.run(
        [sys.executable, "-m", "tests.bench", *PARTS, "--small", "--rows=400", *only],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert [title for title in PARTS.values() if title not in ended.stdout] == []
    report = (ROOT / "var" / "bench-small.md").read_text()
    assert [title for title in PARTS.values() if title not in report] == []
