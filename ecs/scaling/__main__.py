"""`python -m ecs.scaling`: the policy of scaling.yaml and alternatives, as a table and a picture.

Writes ecs/scaling.svg and prints the table of ecs/scaling.md.
"""

import argparse
import math
import re
from collections.abc import Sequence
from pathlib import Path

from ecs.scaling.fleet import Prices, Requests, Run, Task, percentile, simulate
from ecs.scaling.picture import Plot, draw
from ecs.scaling.policies import (
    Fixed,
    Policy,
    Scheduled,
    StepScaling,
    TargetTracking,
    from_template,
)
from ecs.scaling.traffic import DAYS, SALE_OPENS, SALE_TIMES_MEAN, arrivals

PICTURE = Path(__file__).resolve().parents[1] / "scaling.svg"
#: Written by `make bench`.
BENCH = Path(__file__).resolve().parents[2] / "var" / "bench.md"


def measured(report: str) -> float | None:
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
    policies: dict[str, Policy] = {f"backlog per task {chosen.target} (scaling.yaml)": chosen}
    opens = SALE_OPENS // 60
    policies[f"the same, and {enough} tasks for the announced sale"] = Scheduled(
        from_template(), opens - 15, opens + 120, enough
    )
    for target in (chosen.target // 4, chosen.target * 4):
        policies[f"backlog per task {target}"] = from_template(BacklogPerTask=target)
    policies["CPU 35 %"] = TargetTracking(lambda r: r.cpu, 35.0, low, high, 60, 300)
    policies["steps: +1 from 400, +3 from 4,000"] = StepScaling(
        ((400, 1), (4000, 3)), 100, low, high
    )
    policies["fixed 1"] = Fixed(1)
    policies[f"fixed {enough} (the sale's peak)"] = Fixed(enough)
    return policies


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


HEAD = ["policy", "p50 s", "p99 s", "worst s", "backlog", "tasks", "task hours/day", "$/day"]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m ecs.scaling", description=__doc__)
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

    rows = []
    for number, (name, policy) in enumerate(alternatives(task, given.mean).items()):
        first = policy.tasks if isinstance(policy, Fixed) else 1
        run = simulate(traffic, policy, task, tasks=first)
        rows.append(row(name, run, task, prices, requests))
        if number == 0:
            PICTURE.write_text(picture(name, run, task, prices, requests))
    print(markdown(HEAD, rows))
    print(f"\n{PICTURE}")
    if BENCH.exists() and (rate := measured(BENCH.read_text())):
        print(f"make bench measured {rate:.0f} events/s here: --events-per-second {rate:.0f}")


def picture(name: str, run: Run, task: Task, prices: Prices, requests: Requests) -> str:
    hour = task.vcpus * prices.vcpu_hour + task.gigabytes * prices.gigabyte_hour
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
