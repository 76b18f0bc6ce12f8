"""Policies that decide once a minute how many tasks should run, as AWS's alarms let them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ecs.template import deployed

#: What Application Auto Scaling gives the alarms that it makes for target tracking: three minutes
#: above the target, fifteen minutes below nine tenths of it.
HIGH_DATAPOINTS, LOW_DATAPOINTS, LOW_PART = 3, 15, 0.9


@dataclass(frozen=True)
class Reading:
    """What CloudWatch has for one minute."""

    minute: int
    visible: float
    running: int
    cpu: float
    """Per cent of the running tasks' CPU."""
    sent: int = 0
    """Messages sent in the minute."""
    counted: int | None = -1
    """What Container Insights says is running; None where it is late, -1 for the truth."""


class Policy(Protocol):
    """Says how many tasks should run."""

    def desired(self, reading: Reading, now_desired: int) -> int: ...


@dataclass
class Fixed:
    """The same number of tasks day and night."""

    tasks: int

    def desired(self, reading: Reading, now_desired: int) -> int:
        return self.tasks


@dataclass
class TargetTracking:
    """Out in proportion as fast as the cooldown lets it, in one step of a tenth at a time."""

    metric: Callable[[Reading], float]
    target: float
    min_tasks: int
    max_tasks: int
    scale_out_cooldown: int
    """Seconds."""
    scale_in_cooldown: int
    """Seconds."""
    _above: int = 0
    _below: int = 0
    _last: int = field(default=-(10**6))
    """The minute of the last change."""

    def desired(self, reading: Reading, now_desired: int) -> int:
        wanted = self.wants(reading, now_desired)
        if wanted != now_desired:
            self.changed(reading.minute)
        return wanted

    def wants(self, reading: Reading, now_desired: int) -> int:
        """Say how many tasks this policy alone would have run."""
        value = self.metric(reading)
        self._above = self._above + 1 if value > self.target else 0
        self._below = self._below + 1 if value < self.target * LOW_PART else 0
        since = (reading.minute - self._last) * 60
        wanted = now_desired
        if self._above >= HIGH_DATAPOINTS and since >= self.scale_out_cooldown:
            # Tasks that still start are counted as if they ran.
            wanted = max(math.ceil(reading.running * value / self.target), now_desired)
        elif self._below >= LOW_DATAPOINTS and since >= self.scale_in_cooldown:
            fewer = now_desired - max(1, now_desired // 10)
            # Not where one task less is likely to bring the metric above the target again:
            # https://docs.aws.amazon.com/autoscaling/application/userguide/target-tracking-scaling-policy-overview.html
            if fewer and value * reading.running / fewer <= self.target:
                wanted = fewer
        return min(max(wanted, self.min_tasks), self.max_tasks)

    def changed(self, minute: int) -> None:
        """Take note that the number was changed: the cooldowns begin."""
        self._last = minute


@dataclass
class Together:
    """Several target trackings of one service: the largest wins, so all must agree to scale in.

    https://docs.aws.amazon.com/autoscaling/application/userguide/target-tracking-scaling-policy-overview.html
    """

    policies: Sequence[TargetTracking]

    def desired(self, reading: Reading, now_desired: int) -> int:
        wanted = max(policy.wants(reading, now_desired) for policy in self.policies)
        if wanted != now_desired:
            for policy in self.policies:
                policy.changed(reading.minute)
        return wanted

    @property
    def target(self) -> float:
        """The backlog per task."""
        return self.policies[0].target

    @property
    def min_tasks(self) -> int:
        return self.policies[0].min_tasks

    @property
    def max_tasks(self) -> int:
        return self.policies[0].max_tasks

    @property
    def scale_out_cooldown(self) -> int:
        return self.policies[0].scale_out_cooldown

    @property
    def scale_in_cooldown(self) -> int:
        return self.policies[0].scale_in_cooldown


@dataclass
class StepScaling:
    """Adds tasks by how far the backlog is above a line, takes one away below another."""

    steps: tuple[tuple[float, int], ...]
    """From this backlog of the whole queue on, this many tasks are added."""
    low: float
    min_tasks: int
    max_tasks: int
    cooldown_out: int = 60
    cooldown_in: int = 300
    _last: int = field(default=-(10**6))

    def desired(self, reading: Reading, now_desired: int) -> int:
        since = (reading.minute - self._last) * 60
        wanted = now_desired
        added = max((tasks for line, tasks in self.steps if reading.visible >= line), default=0)
        if added and since >= self.cooldown_out:
            wanted = now_desired + added
        elif reading.visible < self.low and since >= self.cooldown_in:
            wanted = now_desired - 1
        wanted = min(max(wanted, self.min_tasks), self.max_tasks)
        if wanted != now_desired:
            self._last = reading.minute
        return wanted


@dataclass
class Scheduled:
    """Another policy, with more tasks at the least for a time that is known before.

    At AWS: put-scheduled-action raises the minimum of the scalable target, a second one lowers it.
    """

    policy: Policy
    from_minute: int
    to_minute: int
    min_tasks: int

    def desired(self, reading: Reading, now_desired: int) -> int:
        announced = self.from_minute <= reading.minute < self.to_minute
        wanted = self.policy.desired(reading, now_desired)
        return max(wanted, self.min_tasks) if announced else wanted


#: The template's expressions, and what they come to.
_BACKLOG: Final = "visible / IF(tasks > 0, tasks, 1)"
_SENT: Final = "FILL(sent, 0) / IF(tasks > 0, tasks, 1)"
_TASKS: Final = "FILL(running, REPEAT)"
#: How a minute's datums of each metric become its one number.
_STATISTICS: Final = {
    "ApproximateNumberOfMessagesVisible": "Average",
    "NumberOfMessagesSent": "Sum",
    "RunningTaskCount": "Average",
}


@dataclass
class CountedTasks:
    """RunningTaskCount, filled where Container Insights is late."""

    repeat: bool = True
    """FILL(running, REPEAT), the last number that was there; else FILL(running, 1)."""
    _last: int = 1

    def __call__(self, reading: Reading) -> int:
        counted = reading.running if reading.counted == -1 else reading.counted
        if counted is not None:
            self._last = counted
        return max(self._last if self.repeat or counted is not None else 1, 1)


def backlog_per_task(tasks: CountedTasks) -> Callable[[Reading], float]:
    return lambda reading: reading.visible / tasks(reading)


def sent_per_task(tasks: CountedTasks) -> Callable[[Reading], float]:
    return lambda reading: reading.sent / tasks(reading)


def from_template(*, repeat: bool = True, **parameters: Any) -> Together:
    """Return the workers' policies as scaling.yaml has them. Raises KeyError for others."""
    templates = deployed(**parameters)
    limits = templates.resource("scaling", "WorkerTarget")
    metrics = {
        "WorkerBacklog": (_BACKLOG, backlog_per_task),
        "WorkerArrivals": (_SENT, sent_per_task),
    }
    found = []
    for name, (expression, metric) in metrics.items():
        tracking: Mapping[str, Any] = templates.resource("scaling", name)[
            "TargetTrackingScalingPolicyConfiguration"
        ]
        queries = tracking["CustomizedMetricSpecification"]["Metrics"]
        expressions = {query["Expression"] for query in queries if "Expression" in query}
        read = [query["MetricStat"] for query in queries if "MetricStat" in query]
        if expressions != {expression, _TASKS} or any(
            one["Stat"] != _STATISTICS[one["Metric"]["MetricName"]] for one in read
        ):
            raise KeyError("scaling.yaml tracks something else than what is simulated here")
        found.append(
            TargetTracking(
                metric=metric(CountedTasks(repeat)),
                target=tracking["TargetValue"],
                min_tasks=limits["MinCapacity"],
                max_tasks=limits["MaxCapacity"],
                scale_out_cooldown=tracking["ScaleOutCooldown"],
                scale_in_cooldown=tracking["ScaleInCooldown"],
            )
        )
    return Together(found)


def backlog_alone(*, repeat: bool = True, **parameters: Any) -> TargetTracking:
    """Return the first of the template's policies without the second."""
    return from_template(repeat=repeat, **parameters).policies[0]
