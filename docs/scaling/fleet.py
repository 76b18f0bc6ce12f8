"""The queue and the tasks, second by second, under one policy."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from docs.scaling import measured
from docs.scaling.policies import Policy, Reading


@dataclass(frozen=True)
class Task:
    """What one worker task does and costs."""

    events_per_second: float = measured.events_per_second(measured.DEFAULT_SIZE)
    start_seconds: int = 60
    """From the decision to the first poll: placed, image pulled, Django started."""
    cpu_at_full_load: float = measured.cpu_at_full_load(measured.DEFAULT_SIZE)
    """Per cent of its CPU."""
    vcpus: float = measured.DEFAULT_SIZE / 1024
    gigabytes: float = measured.gigabytes(measured.DEFAULT_SIZE)

    @classmethod
    def of(cls, cpu_units: int) -> "Task":
        """Return a task of another size."""
        return cls(
            events_per_second=measured.events_per_second(cpu_units),
            cpu_at_full_load=measured.cpu_at_full_load(cpu_units),
            vcpus=cpu_units / 1024,
            gigabytes=measured.gigabytes(cpu_units),
        )

    def hour(self, prices: "Prices") -> float:
        """Return what it costs in an hour, in dollars."""
        return self.vcpus * prices.vcpu_hour + self.gigabytes * prices.gigabyte_hour


@dataclass(frozen=True)
class Prices:
    """US dollars, of Singapore's price list; give your region's."""

    vcpu_hour: float = 0.05056
    gigabyte_hour: float = 0.00553
    million_requests: float = 0.40


@dataclass(frozen=True)
class Requests:
    """Calls of SQS."""

    per_event: float = 0.6
    """Send, receive and delete together; `make bench` measures them."""
    idle_per_task_hour: float = 240.0
    """One long poll of 15 s after the other."""


#: Minutes until a metric of SQS and of Container Insights can be read.
METRIC_DELAY = 1


@dataclass
class Run:
    """What happened. One entry for each minute."""

    arrived: list[int] = field(default_factory=list)
    backlog: list[int] = field(default_factory=list)
    tasks: list[int] = field(default_factory=list)
    latency_p99: list[float] = field(default_factory=list)
    """Seconds, of the events done in the minute; 0 where none was."""
    latencies: Counter[int] = field(default_factory=Counter)
    """Events by whole seconds from sent to done."""

    @property
    def done(self) -> int:
        return self.latencies.total()

    @property
    def changes(self) -> int:
        """How often the number of tasks changed."""
        return sum(before != after for before, after in pairwise(self.tasks))

    @property
    def task_hours(self) -> float:
        return sum(self.tasks) / 60

    def cost(self, task: Task, prices: Prices, requests: Requests) -> float:
        """Return the dollars of all days together."""
        calls = self.done * requests.per_event + self.task_hours * requests.idle_per_task_hour
        return self.task_hours * task.hour(prices) + calls / 1e6 * prices.million_requests


def percentile(values: Counter[int], part: float) -> int:
    """Return the least value that `part` of all are not above."""
    wanted, seen = part * values.total(), 0
    for value in sorted(values):
        seen += values[value]
        if seen >= wanted:
            return value
    return 0


def simulate(
    arrivals: Sequence[int],
    policy: Policy,
    task: Task,
    *,
    tasks: int = 1,
    insights_every: int = 1,
) -> Run:
    """Let `arrivals` (events in each second) be worked off; `tasks` run at the start.

    Container Insights has a number for one of `insights_every` minutes, where it is late.
    """
    run = Run()
    waiting: deque[list[int]] = deque()  # [second of arrival, how many are left of it]
    backlog, running, starting = 0, tasks, deque[int]()  # seconds at which a task is ready
    capacity_left, busy = 0.0, 0.0
    minute_arrived, minute_latencies = 0, Counter[int]()
    readings: deque[Reading] = deque()

    for second, arrived in enumerate(arrivals):
        while starting and starting[0] <= second:
            starting.popleft()
            running += 1
        if arrived:
            waiting.append([second, arrived])
            backlog += arrived
            minute_arrived += arrived
        offered = running * task.events_per_second
        capacity_left = min(capacity_left, 1.0) + offered
        can = int(capacity_left)
        did = min(can, backlog)
        busy += did / offered if offered else 0.0
        capacity_left -= did
        backlog -= did
        while did:
            oldest = waiting[0]
            taken = min(oldest[1], did)
            minute_latencies[second - oldest[0]] += taken
            oldest[1] -= taken
            did -= taken
            if not oldest[1]:
                waiting.popleft()

        if second % 60 == 59:
            run.arrived.append(minute_arrived)
            run.backlog.append(backlog)
            run.tasks.append(running + len(starting))
            run.latency_p99.append(percentile(minute_latencies, 0.99))
            run.latencies.update(minute_latencies)
            cpu = busy / 60 * task.cpu_at_full_load
            minute = second // 60
            counted = running if minute % insights_every == 0 else None
            readings.append(Reading(minute, backlog, running, cpu, minute_arrived, counted))
            minute_arrived, minute_latencies, busy = 0, Counter(), 0.0
            if len(readings) > METRIC_DELAY:
                now_desired = running + len(starting)
                desired = policy.desired(readings.popleft(), now_desired)
                for _ in range(desired - now_desired):
                    starting.append(second + task.start_seconds)
                for _ in range(now_desired - desired):
                    if starting:
                        starting.pop()
                    else:
                        running -= 1  # it drains: what it holds is done, it takes no more
    return run
