"""`python -m docs.scaling`: the policies of scaling.yaml and alternatives, as tables and a picture.

Without arguments it writes the targets into ecs/scaling.yaml, the tables into README.md, and
scaling.svg; with some it prints the tables.
"""

import argparse
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from docs.scaling import measured, written
from docs.scaling.fleet import Prices, Requests, Run, Task, percentile, simulate
from docs.scaling.picture import Plot, draw
from docs.scaling.policies import (
    Fixed,
    Policy,
    Scheduled,
    StepScaling,
    TargetTracking,
    backlog_alone,
    from_template,
)
from docs.scaling.traffic import DAYS, SALE_OPENS, SALE_TIMES_MEAN, arrivals

PICTURE = Path(__file__).resolve().parent / "scaling.svg"
CHOSEN = "backlog and arrivals per task (scaling.yaml)"
#: Events in each second of the day that shows whether a policy settles.
STEADY = 60
#: CPU units of the other size that is simulated.
OTHER_SIZE = 1024
#: Container Insights has a number every so many minutes, where it is late.
LATE = 3
#: Written by `make bench`.
BENCH = Path(__file__).resolve().parents[2] / "var" / "bench.md"


def benchmarked(report: str) -> float | None:
    """Return the events per second of this worker with the shop's handler, if `make bench` has it.

    With 10 ms added to each call of SQS, which is nearer to AWS than none.
    """
    _, found, table = report.partition("Events per second, the shop's handler")
    row = re.search(r"^\| skincare\.sqs \|[^|]*\|[^|]*\| *([\d,]+) *\|", table, re.MULTILINE)
    return float(row[1].replace(",", "")) if found and row else None


def alternatives(task: Task, mean: float) -> dict[str, Policy]:
    """Return what scaling.yaml says first, then what it might say instead."""
    chosen = from_template()
    low, high = chosen.min_tasks, chosen.max_tasks
    enough = math.ceil(SALE_TIMES_MEAN * mean / task.events_per_second)
    policies: dict[str, Policy] = {CHOSEN: chosen}
    opens = SALE_OPENS // 60
    policies[f"the same, and {enough} tasks for the announced sale"] = Scheduled(
        from_template(), opens - 15, opens + 120, enough
    )
    policies["backlog per task alone"] = backlog_alone()
    for target in (int(chosen.target) // 4, int(chosen.target) * 4):
        policies[f"the same with {target} events for each"] = backlog_alone(BacklogPerTask=target)
    policies["CPU 60 %"] = TargetTracking(lambda r: r.cpu, 60.0, low, high, 60, 300)
    policies["steps: +1 from 400, +3 from 4,000"] = StepScaling(
        ((400, 1), (4000, 3)), 100, low, high
    )
    policies["fixed 1"] = Fixed(1)
    policies[f"fixed {enough} (the sale's peak)"] = Fixed(enough)
    return policies


def steady(task: Task) -> list[list[str]]:
    """Return the table of a day under STEADY events in each second: who settles, who swings."""
    whole_day = [STEADY] * 24 * 3600
    runs: dict[str, tuple[Policy, int]] = {
        CHOSEN: (from_template(), 1),
        "the same, Container Insights late": (from_template(), LATE),
        "the same with FILL(running, 1), late": (from_template(repeat=False), LATE),
        "backlog per task alone": (backlog_alone(), 1),
    }
    rows = []
    for name, (policy, every) in runs.items():
        run = simulate(whole_day, policy, task, insights_every=every)
        rows.append(
            [
                name,
                f"{run.task_hours / 24:.2f}",
                f"{run.changes}",
                *(f"{percentile(run.latencies, part)}" for part in (0.5, 0.95, 0.99)),
            ]
        )
    return rows


def row(name: str, run: Run, task: Task, prices: Prices, requests: Requests) -> list[str]:
    worst = max(run.latencies)
    return [
        name,
        f"{percentile(run.latencies, 0.5)}",
        f"{percentile(run.latencies, 0.99)}",
        f"{worst}",
        f"{max(run.backlog):,}",
        f"{max(run.tasks)}",
        f"{run.task_hours / DAYS:.0f}",
        f"{run.cost(task, prices, requests) / DAYS:.2f}",
    ]


def sizes(prices: Prices) -> list[list[str]]:
    """Return the table of a worker's sizes: what it does, its targets, and what it costs."""
    rows = []
    for size in measured.SIZES:
        task = Task.of(size)
        hour = task.hour(prices)
        rows.append(
            [
                f"{size}",
                f"{task.events_per_second:.0f}",
                f"{task.cpu_at_full_load:.0f}",
                f"{measured.backlog_per_task(size)}",
                f"{measured.arrivals_per_task(size)}",
                f"{hour * HOURS_OF_A_MONTH:.0f}",
                f"{hour * HOURS_OF_A_MONTH / task.events_per_second:.2f}",
            ]
        )
    return rows


HOURS_OF_A_MONTH = 730
SIZES_HEAD = [
    *("`WorkerCpu`", "events/s", "% of its CPU", "backlog per task", "arrivals per task"),
    *("$/month", "$/month for 1 event/s"),
]
STEADY_HEAD = ["policy", "tasks on average", "changes a day", "p50 s", "p95 s", "p99 s"]
HEAD = ["policy", "p50 s", "p99 s", "worst s", "backlog", "tasks", "task hours/day", "$/day"]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docs.scaling", description=__doc__)
    parser.add_argument("--mean", type=float, default=5.0, help="events per second on average")
    parser.add_argument("--events-per-second", type=float, default=Task.events_per_second)
    parser.add_argument("--start-seconds", type=int, default=Task.start_seconds)
    parser.add_argument("--vcpu-hour", type=float, default=Prices.vcpu_hour)
    parser.add_argument("--gigabyte-hour", type=float, default=Prices.gigabyte_hour)
    parser.add_argument("--million-requests", type=float, default=Prices.million_requests)
    given = parser.parse_args()
    task = Task(events_per_second=given.events_per_second, start_seconds=given.start_seconds)
    prices = Prices(given.vcpu_hour, given.gigabyte_hour, given.million_requests)
    requests = Requests()
    traffic = arrivals(mean=given.mean)
    if len(sys.argv) == 1:  # the policies below are those of the template
        written.write({})

    rows = []
    for number, (name, policy) in enumerate(alternatives(task, given.mean).items()):
        first = policy.tasks if isinstance(policy, Fixed) else 1
        run = simulate(traffic, policy, task, tasks=first)
        rows.append(row(name, run, task, prices, requests))
        if number == 0 and len(sys.argv) == 1:
            PICTURE.write_text(picture(name, run, task, prices, requests))
    other = Task.of(OTHER_SIZE)
    run = simulate(traffic, from_template(WorkerCpu=str(OTHER_SIZE)), other)
    rows.append(row(f"the first, `WorkerCpu={OTHER_SIZE}`", run, other, prices, requests))
    tables = {
        "sizes": markdown(SIZES_HEAD, sizes(prices)),
        "sale": markdown(HEAD, rows),
        "steady": markdown(STEADY_HEAD, steady(task)),
    }
    print("\n\n".join(tables.values()))
    if len(sys.argv) == 1:
        written.write(tables)
        print(f"\nwritten to {written.README}, {written.TEMPLATE} and {PICTURE}")
    if BENCH.exists() and (rate := benchmarked(BENCH.read_text())):
        print(f"make bench measured {rate:.0f} events/s here: --events-per-second {rate:.0f}")


def picture(name: str, run: Run, task: Task, prices: Prices, requests: Requests) -> str:
    hour = task.hour(prices)
    dollars = [
        24 * tasks * (hour + requests.idle_per_task_hour / 1e6 * prices.million_requests)
        + arrived * 1440 * requests.per_event / 1e6 * prices.million_requests
        for tasks, arrived in zip(run.tasks, run.arrived, strict=True)
    ]
    return draw(
        f"Three days with a sale at {SALE_TIMES_MEAN} times the mean: {name}",
        [
            Plot("events arriving in a second", [arrived / 60 for arrived in run.arrived]),
            Plot("events waiting", run.backlog),
            Plot("worker tasks", run.tasks),
            Plot("p99 from sent to done, in seconds", run.latency_p99, " s"),
            Plot("dollars for a day at this rate", dollars, " $"),
        ],
    )


if __name__ == "__main__":
    main()
