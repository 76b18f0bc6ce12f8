"""The answer comes in time, whatever the check does."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from skincare.local.deadline import busyness
from skincare.telemetry.readiness import BoundedCheck


def test_a_check_that_works_passes_and_one_that_fails_does_not() -> None:
    def fail() -> None:
        raise LookupError

    assert BoundedCheck(lambda: None).passes(within=5)
    assert not BoundedCheck(fail).passes(within=5)


def test_it_is_asked_anew_each_time() -> None:
    calls = []
    check = BoundedCheck(lambda: calls.append(1))

    assert [check.passes(within=5) for _ in range(3)] == [True] * 3
    assert len(calls) == 3


def test_a_check_that_hangs_is_answered_in_time_and_costs_one_thread() -> None:
    release, calls = threading.Event(), []

    def hang() -> None:
        calls.append(1)
        release.wait(timeout=20)

    check = BoundedCheck(hang)
    started = time.monotonic()
    with ThreadPoolExecutor(8) as callers:
        answers = list(callers.map(lambda _: check.passes(within=0.2), range(8)))

    assert answers == [False] * 8
    assert time.monotonic() - started < 2 * busyness()
    assert len(calls) == 1
    release.set()
    assert check.passes(within=5)


def test_a_check_that_hangs_for_ever_is_left_behind() -> None:
    release = threading.Event()
    checks = iter([lambda: release.wait(timeout=20), lambda: None])
    check = BoundedCheck(lambda: next(checks)(), abandon_after=0.2)

    assert not check.passes(within=0.3)
    assert check.passes(within=5)
    release.set()
