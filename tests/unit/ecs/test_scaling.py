"""The simulation loses no event, keeps to the policy, and says what its document says."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from docs.scaling import measured, written
from docs.scaling.__main__ import (
    CHOSEN,
    HEAD,
    SIZES_HEAD,
    STEADY_HEAD,
    benchmarked,
    markdown,
    row,
    sizes,
    steady,
)
from docs.scaling.fleet import Prices, Requests, Task, percentile, simulate
from docs.scaling.policies import HIGH_DATAPOINTS, LOW_DATAPOINTS, Fixed, from_template
from docs.scaling.traffic import SALE_OPENS, SALE_TIMES_MEAN, arrivals, rate
from ecs.template import deployed, load
from tests.bench.report import Table

DOCUMENT = written.README.read_text()
PERFORMANCE = (Path(settings.BASE_DIR) / "docs" / "performance.md").read_text()


def work_of(tasks: float) -> int:
    """Events in each second that so many tasks can do."""
    return round(tasks * Task.events_per_second)


def test_what_was_measured_stands_in_the_documents_as_it_was() -> None:
    assert f"**{measured.CPU_MS_PER_EVENT} ms of CPU**" in DOCUMENT
    assert f"**{measured.EVENTS_PER_SECOND} events/s**" in DOCUMENT
    assert f"at {measured.CPU_MS_PER_EVENT} ms of CPU for each" in PERFORMANCE
    assert f"**{measured.WAIT_SECONDS} seconds**" in DOCUMENT


@pytest.mark.parametrize("size", measured.SIZES)
def test_a_task_does_what_its_cpu_is_enough_for_and_what_its_processes_do(size: int) -> None:
    milliseconds = 1000 * size / 1024  # of CPU in each second
    rate_ = measured.events_per_second(size)

    assert rate_ * measured.CPU_MS_PER_EVENT <= milliseconds
    assert rate_ <= measured.EVENTS_PER_SECOND
    assert rate_ + 1 > min(milliseconds / measured.CPU_MS_PER_EVENT, measured.EVENTS_PER_SECOND)


@pytest.mark.parametrize("size", measured.SIZES)
def test_the_targets_of_each_size_follow_from_what_it_does(size: int) -> None:
    backlog, arrivals_ = from_template(WorkerCpu=str(size)).policies
    rate_ = measured.events_per_second(size)

    assert backlog.target == measured.WAIT_SECONDS * rate_
    assert arrivals_.target == pytest.approx(0.7 * rate_ * 60, abs=0.5)


@pytest.mark.parametrize("size", measured.SIZES)
def test_a_size_is_one_that_fargate_has_and_the_simulation_pays_for(size: int) -> None:
    # https://docs.aws.amazon.com/AmazonECS/latest/developerguide/fargate-tasks-services.html#fargate-tasks-size
    task = deployed(WorkerCpu=str(size)).resource("worker", "TaskDefinition")

    assert (task["Cpu"], task["Memory"]) == (str(size), str(2 * size))
    assert measured.gigabytes(size) == 2 * size / 1024
    own = deployed(WorkerCpu=str(size), WorkerMemory="8192").resource("worker", "TaskDefinition")
    assert own["Memory"] == "8192"


def test_a_target_of_ones_own_takes_the_place_of_the_measured_one() -> None:
    backlog, arrivals_ = from_template(BacklogPerTask=90, ArrivalsPerTask=500).policies

    assert (backlog.target, arrivals_.target) == (90, 500)


def test_the_default_is_the_size_at_which_an_event_costs_least() -> None:
    def cost(size: int) -> float:
        task = Task.of(size)
        return task.hour(Prices()) / task.events_per_second

    assert cost(measured.DEFAULT_SIZE) == pytest.approx(min(map(cost, measured.SIZES)), rel=0.02)


def test_the_limits_and_cooldowns_are_those_of_the_template() -> None:
    policy = from_template()

    assert (policy.min_tasks, policy.max_tasks) == (1, 10)
    assert (policy.scale_out_cooldown, policy.scale_in_cooldown) == (60, 300)


def test_every_worker_of_the_largest_fleet_finds_a_database_connection() -> None:
    most = from_template().max_tasks * settings.SQS_POLICY.concurrency

    assert most <= 100, "PostgreSQL's default max_connections"


def test_the_measured_worker_has_the_processes_that_it_has_on_ecs() -> None:
    assert f"{settings.SQS_POLICY.concurrency} processes do" in DOCUMENT


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
    run = simulate([work_of(5.7)] * busy + [0] * quiet, from_template(), Task())

    first_more = next(minute for minute, tasks in enumerate(run.tasks) if tasks > 1)
    assert first_more == HIGH_DATAPOINTS + 1
    empty = next(m for m, waiting in enumerate(run.backlog) if m > first_more and not waiting)
    fewer = next(m for m, tasks in enumerate(run.tasks) if m > empty and tasks < max(run.tasks))
    assert fewer - empty >= LOW_DATAPOINTS
    assert run.tasks[-1] < max(run.tasks)


def test_a_fixed_fleet_with_room_lets_nothing_wait() -> None:
    run = simulate([work_of(2.9)] * 600, Fixed(4), Task(), tasks=4)

    assert percentile(run.latencies, 1.0) == 0


def test_the_sale_is_thirty_times_the_mean_at_its_height() -> None:
    most = max(rate(second, mean=1.0) for second in range(SALE_OPENS, SALE_OPENS + 3600))

    assert most == pytest.approx(SALE_TIMES_MEAN, rel=0.05)


def test_the_table_in_the_documentation_is_what_the_simulation_says() -> None:
    run = simulate(arrivals(mean=5.0), from_template(), Task())

    table = markdown(HEAD, [row(CHOSEN, run, Task(), Prices(), Requests())])

    others = [markdown(STEADY_HEAD, steady(Task())), markdown(SIZES_HEAD, sizes(Prices()))]
    for line in "\n".join([table, *others]).splitlines():
        assert line in DOCUMENT


def test_the_announced_sale_has_as_many_tasks_as_its_peak_needs() -> None:
    needed = math.ceil(SALE_TIMES_MEAN * 5.0 / Task.events_per_second)

    assert f"MinCapacity={needed}\n" in DOCUMENT
    assert f"the same, and {needed} tasks for the announced sale" in DOCUMENT
    assert needed <= from_template().max_tasks


def test_under_a_steady_load_the_fleet_settles_and_nothing_waits() -> None:
    for tasks in (0.3, 1.7, 5.7):
        rate_ = work_of(tasks)
        run = simulate([rate_] * 24 * 3600, from_template(), Task())

        needed = rate_ / Task.events_per_second
        assert percentile(run.latencies, 0.99) == 0, rate_
        assert run.task_hours / 24 < max(2.2 * needed, 1.2), rate_
        assert run.changes < 25, rate_


def test_a_late_count_of_running_tasks_changes_nothing() -> None:
    steady_load = [work_of(1.7)] * 12 * 3600
    on_time = simulate(steady_load, from_template(), Task())
    late = simulate(steady_load, from_template(), Task(), insights_every=5)

    assert late.task_hours == pytest.approx(on_time.task_hours, rel=0.1)


def test_an_event_that_takes_longer_than_was_measured_is_left_to_the_backlog() -> None:
    slow = Task(events_per_second=Task.events_per_second * 0.3)

    run = simulate([work_of(6 * 0.3)] * 12 * 3600, from_template(), slow)

    assert max(run.tasks) >= 6
    assert run.backlog[-1] < 4000


def test_the_throughput_is_read_from_the_benchmarks_report() -> None:
    table = Table("Events per second, the shop's handler", ["", "0 ms", "÷", "10 ms", "÷"])
    table.rows = [["boto3 loop", "60", "2", "50", "2"], ["skincare.sqs", "120", "1", "1,100", "1"]]

    assert benchmarked(table.markdown()) == 1100
    assert benchmarked("Events per second, handler that does nothing:") is None


def test_a_task_starts_within_the_time_that_its_health_check_gives_it() -> None:
    text = load("worker").resources["TaskDefinition"]["Properties"]["ContainerDefinitions"][0]

    assert text["HealthCheck"]["StartPeriod"] >= Task.start_seconds


def test_the_largest_fleet_finds_its_database_connections_while_a_service_is_rolled() -> None:
    # Each thread that answers requests, each process of a worker, and the relay of either keep one.
    gunicorn: dict[str, Any] = {}
    exec((Path(settings.BASE_DIR) / "gunicorn.conf.py").read_text(), gunicorn)  # noqa: S102
    dockerfile = (Path(settings.BASE_DIR) / "docker" / "Dockerfile").read_text()
    processes = re.search(r"WEB_CONCURRENCY=(\d+)", dockerfile)
    assert processes is not None
    api = int(processes[1]) * (gunicorn["threads"] + 1)
    worker = settings.SQS_POLICY.concurrency * 2
    most = {
        service: deployed().resource("scaling", target)["MaxCapacity"] * connections
        for service, target, connections in (
            ("api", "ApiTarget", api),
            ("worker", "WorkerTarget", worker),
        )
    }
    parameters = deployed().resource("foundation", "DatabaseParameters")["Parameters"]

    # deploy.sh rolls one service after the other, each with up to twice its tasks.
    assert sum(most.values()) + max(most.values()) + 10 <= int(parameters["max_connections"])
    # AWS's own number for 4 GiB is the same: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/CHAP_Limits.html
    assert int(parameters["max_connections"]) <= 4 * 2**30 // 9_531_392
    assert load("foundation").parameters["DatabaseInstanceClass"]["Default"] == "db.t4g.medium"
