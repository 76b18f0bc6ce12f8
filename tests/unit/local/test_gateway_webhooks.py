"""How often the gateways call again: their documentation's tables, written down once more."""

import pytest

from skincare.local.gateways.clock import Agenda, Clock, iso, wib
from skincare.local.gateways.webhooks import midtrans_retry, xendit_retry

MINUTE, HOUR = 60, 3600


def waits(plan: object, status: int | None) -> list[float]:
    assert callable(plan)
    found = []
    while (pause := plan(status, len(found) + 1)) is not None:
        found.append(pause)
    return found


ALL = [2 * MINUTE, 10 * MINUTE, 30 * MINUTE, 90 * MINUTE, 210 * MINUTE]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, []),
        (204, []),
        (301, []),
        (302, []),
        (303, []),
        (500, ALL[:1]),
        (400, ALL[:2]),
        (404, ALL[:2]),
        (503, ALL[:4]),
        (403, ALL),
        (502, ALL),
        (None, ALL),
    ],
)
def test_midtrans_calls_again_as_the_answer_wants_it(
    status: int | None, expected: list[float]
) -> None:
    assert waits(midtrans_retry, status) == expected


@pytest.mark.parametrize("status", [301, 400, 403, 500, 503, None])
def test_xendit_calls_again_six_times_within_a_day(status: int | None) -> None:
    found = waits(xendit_retry, status)
    at = [sum(found[: n + 1]) for n in range(len(found))]
    assert at == [HOUR / 4, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR]


def test_xendit_is_content_with_any_2xx() -> None:
    assert waits(xendit_retry, 204) == []


def test_the_clock_stops_at_each_moment_at_which_something_is_due() -> None:
    # given
    clock = Clock()
    agenda, start = Agenda(clock), clock.now()
    done: list[tuple[str, int]] = []

    def note(name: str) -> None:
        done.append((name, round(clock.now() - start)))

    agenda.at(start + 300, lambda: note("later"))
    agenda.at(start + 100, lambda: (note("first"), agenda.at(start + 200, lambda: note("new"))))
    agenda.at(start + 10_000, lambda: note("never"))
    # when
    clock.advance(1000, next_due=agenda.next_due, run_due=agenda.run_due)
    # then
    assert done == [("first", 100), ("new", 200), ("later", 300)]
    assert round(clock.now() - start) == 1000


@pytest.mark.parametrize(
    ("digits", "written"),
    [
        (0, "2026-11-30T03:00:00Z"),
        (3, "2026-11-30T03:00:00.500Z"),
        (6, "2026-11-30T03:00:00.500000Z"),
        (9, "2026-11-30T03:00:00.500000000Z"),
    ],
)
def test_xendit_writes_its_times_in_utc_with_so_many_digits(digits: int, written: str) -> None:
    assert iso(1_796_007_600.5, digits) == written


def test_midtrans_writes_its_times_in_jakartas() -> None:
    assert wib(1_796_007_600.5) == "2026-11-30 10:00:00"
