"""The simulation loses no event, keeps to the policy, and says what its document says."""

from pathlib import Path

import pytest
from django.conf import settings

from docs.scaling.__main__ import (
    CHOSEN,
    HEAD,
    STEADY_HEAD,
    markdown,
    measured,
    row,
    steady,
)
from docs.scaling.fleet import Prices, Requests, Task, percentile, simulate
from docs.scaling.policies import HIGH_DATAPOINTS, LOW_DATAPOINTS, Fixed, from_template
from docs.scaling.traffic import SALE_OPENS, SALE_TIMES_MEAN, arrivals, rate
from ecs.template import load
from tests.bench.report import Table

DOCUMENT = (Path(settings.BASE_DIR) / "docs" / "scaling" / "README.md").read_text()
WANTED_SECONDS = 10


def test_the_target_is_the_wanted_wait_times_the_throughput_of_a_task() -> None:
    assert from_template().target == WANTED_SECONDS * Task.events_per_second
    assert f"= {WANTED_SECONDS} s " in DOCUMENT


def test_the_limits_and_cooldowns_are_those_of_the_template() -> None:
    policy = from_template()

    assert (policy.min_tasks, policy.max_tasks) == (1, 10)
    assert (policy.scale_out_cooldown, policy.scale_in_cooldown) == (60, 300)


def test_every_worker_of_the_largest_fleet_finds_a_database_connection() -> None:
    most = from_template().max_tasks * settings.SQS_POLICY.concurrency

    assert most <= 100, "PostgreSQL's default max_connections"


def test_the_throughput_of_a_task_is_its_processes_by_what_an_event_waits_for() -> None:
    mail, gateway, database = 100, 150, 25  # milliseconds, of the document's sum
    event = (mail + gateway + mail) / 3 + database

    assert Task.events_per_second == round(settings.SQS_POLICY.concurrency * 1000 / event)
    assert f"÷ {event:.0f} ms" in DOCUMENT


def test_no_event_is_lost_or_made_up() -> None:
    traffic = arrivals(mean=2.0)

    run = simulate(traffic, from_template(), Task())

    assert sum(run.arrived) == sum(traffic)
    assert run.done + run.backlog[-1] == sum(traffic)
    assert max(run.latencies) < 3600


@pytest.mark.parametrize(
    "load",
    [[0] * 1800, [3000] * 600 + [0] * 3600, ([500] * 60 + [0] * 240) * 6],
    ids=["nothing", "far too much", "bursts"],
)
def test_the_fleet_never_leaves_its_limits(load: list[int]) -> None:
    policy = from_template()

    run = simulate(load, policy, Task())

    assert {policy.min_tasks <= tasks <= policy.max_tasks for tasks in run.tasks} == {True}
    assert run.done + run.backlog[-1] == sum(load)


def test_workers_come_when_three_readings_agree_and_leave_after_fifteen() -> None:
    busy, quiet = 20 * 60, 60 * 60
    run = simulate([200] * busy + [0] * quiet, from_template(), Task())

    first_more = next(minute for minute, tasks in enumerate(run.tasks) if tasks > 1)
    assert first_more == HIGH_DATAPOINTS + 1
    empty = next(m for m, waiting in enumerate(run.backlog) if m > first_more and not waiting)
    fewer = next(m for m, tasks in enumerate(run.tasks) if m > empty and tasks < max(run.tasks))
    assert fewer - empty >= LOW_DATAPOINTS
    assert run.tasks[-1] < max(run.tasks)


def test_a_fixed_fleet_with_room_lets_nothing_wait() -> None:
    run = simulate([100] * 600, Fixed(4), Task(), tasks=4)

    assert percentile(run.latencies, 1.0) == 0


def test_the_sale_is_thirty_times_the_mean_at_its_height() -> None:
    most = max(rate(second, mean=1.0) for second in range(SALE_OPENS, SALE_OPENS + 3600))

    assert most == pytest.approx(SALE_TIMES_MEAN, rel=0.05)


def test_the_table_in_the_documentation_is_what_the_simulation_says() -> None:
    run = simulate(arrivals(mean=5.0), from_template(), Task())

    table = markdown(HEAD, [row(CHOSEN, run, Task(), Prices(), Requests())])

    for line in [*table.splitlines(), *markdown(STEADY_HEAD, steady(Task())).splitlines()]:
        assert line in DOCUMENT


def test_arrivals_are_seven_tenths_of_the_throughput_of_a_task() -> None:
    arrivals_policy = from_template().policies[1]

    assert arrivals_policy.target == pytest.approx(0.7 * Task.events_per_second * 60)


def test_under_a_steady_load_the_fleet_settles_and_nothing_waits() -> None:
    for rate_ in (10, 60, 200):
        run = simulate([rate_] * 24 * 3600, from_template(), Task())

        needed = rate_ / Task.events_per_second
        assert percentile(run.latencies, 0.99) == 0, rate_
        assert run.task_hours / 24 < max(2.2 * needed, 1.2), rate_
        assert run.changes < 25, rate_


def test_a_late_count_of_running_tasks_changes_nothing() -> None:
    steady_load = [60] * 12 * 3600
    on_time = simulate(steady_load, from_template(), Task())
    late = simulate(steady_load, from_template(), Task(), insights_every=5)

    assert late.task_hours == pytest.approx(on_time.task_hours, rel=0.1)


def test_an_event_that_takes_longer_than_was_measured_is_left_to_the_backlog() -> None:
    slow = Task(events_per_second=10)

    run = simulate([60] * 12 * 3600, from_template(), slow)

    assert max(run.tasks) >= 6
    assert run.backlog[-1] < 4000


def test_the_throughput_is_read_from_the_benchmarks_report() -> None:
    table = Table("Events per second, the shop's handler", ["", "0 ms", "÷", "10 ms", "÷"])
    table.rows = [["boto3 loop", "60", "2", "50", "2"], ["skincare.sqs", "120", "1", "1,100", "1"]]

    assert measured(table.markdown()) == 1100
    assert measured("Events per second, handler that does nothing:") is None


def test_a_task_starts_within_the_time_that_its_health_check_gives_it() -> None:
    text = load("worker").resources["TaskDefinition"]["Properties"]["ContainerDefinitions"][0]

    assert text["HealthCheck"]["StartPeriod"] >= Task.start_seconds
