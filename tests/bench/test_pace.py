"""The one number of the benchmark that is more than a count or a clock."""

import pytest

from tests.bench.measure import pace


def test_a_steady_worker_has_its_rate() -> None:
    times = [number / 250 for number in range(500)]

    assert pace(times) == pytest.approx(250)


def test_a_worker_in_bursts_gets_no_pause_for_free() -> None:
    # Stock Celery: twenty at once, then a second of nothing. First to last would say 119 / 5 s.
    times = [float(second) for second in range(6) for _ in range(20)]

    assert pace(times) == pytest.approx(20)


def test_marks_may_come_in_any_order() -> None:
    assert pace([2.0, 0.0, 1.0]) == pytest.approx(1)
