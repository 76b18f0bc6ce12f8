"""How long a wait is patient."""

import os
import time
from itertools import pairwise
from pathlib import Path

import pytest

from skincare.local import deadline
from skincare.local.deadline import busyness, wait_until

CORES = os.cpu_count() or 1


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The system's word for its load: by now a thousand threads want each core."""
    load = tmp_path / "loadavg"
    load.write_text(f"0.00 0.00 0.00 {1000 * CORES}/1500 4711")
    monkeypatch.setattr(deadline, "_LOAD", load)
    return load


def test_a_condition_that_never_comes_is_given_up_and_named() -> None:
    with pytest.raises(TimeoutError, match=r"gave up after 0\.05 s of waiting for Godot"):
        wait_until(lambda: False, seconds=0.05, what="Godot")


@pytest.mark.usefixtures("load")
def test_what_begins_all_at_once_makes_a_wait_longer_at_once() -> None:
    ready_at = time.monotonic() + 0.2

    assert busyness() >= 1000
    wait_until(lambda: time.monotonic() > ready_at, seconds=0.01, what="a slow machine")


def test_a_wait_stays_as_long_as_the_busiest_moment_made_it(load: Path) -> None:
    ready_at = time.monotonic() + 0.2

    def ready() -> bool:
        load.write_text("0.00 0.00 0.00 1/1500 4711")
        return time.monotonic() > ready_at

    wait_until(ready, seconds=0.01, what="a machine that was slow")


def test_the_longer_a_wait_the_more_rarely_it_is_asked_whether_it_is_over() -> None:
    asked: list[float] = []
    began = time.monotonic()

    def over() -> bool:
        asked.append(time.monotonic() - began)
        return asked[-1] > 1

    wait_until(over, seconds=5, what="a second", every=0.001)

    assert len(asked) < 200
    assert [pause for pause in pauses(asked) if pause < 0.001] == []


def pauses(moments: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(moments)]


def test_a_system_that_does_not_say_is_no_busier_than_its_average(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(deadline, "_LOAD", tmp_path / "nothing")

    assert busyness() == pytest.approx(max(1.0, os.getloadavg()[0] / CORES), rel=0.5)
