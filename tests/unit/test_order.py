"""The order in which test files are given to the processes that run them."""

from pathlib import Path

from tests.conftest import order_of_files

LONG, MIDDLE, SHORT, LAST = (
    Path("tests") / name for name in ("a/l.py", "b/m.py", "c/s.py", "d/t.py")
)
MAY_TAKE = {SHORT: 300.0, LONG: 1800.0, LAST: 300.0, MIDDLE: 600.0}


def test_what_may_take_longest_comes_first() -> None:
    assert order_of_files(MAY_TAKE, set(), 2) == [LONG, MIDDLE, SHORT, LAST]


def test_what_waits_begins_before_all_and_nothing_long_waits_behind_it() -> None:
    # The second process has LONG; the first one's next is whatever comes third.
    assert order_of_files(MAY_TAKE, {MIDDLE}, 2) == [MIDDLE, LONG, LAST, SHORT]


def test_more_processes_than_files_change_nothing() -> None:
    assert order_of_files(MAY_TAKE, {MIDDLE}, 8) == [MIDDLE, LONG, SHORT, LAST]
