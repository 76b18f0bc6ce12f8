"""Policies that decide once a minute how many tasks should run, as AWS's alarms let them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

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
        value = self.metric(reading)
        self._above = self._above + 1 if value > self.target else 0
        self._below = self._below + 1 if value < self.target * LOW_PART else 0
        since = (reading.minute - self._last) * 60
        wanted = now_desired
        if self._above >= HIGH_DATAPOINTS and since >= self.scale_out_cooldown:
            # Tasks that still start are counted as if they ran.
            wanted = max(math.ceil(reading.running * value / self.target), now_desired)
        elif self._below >= LOW_DATAPOINTS and since >= self.scale_in_cooldown:
            wanted = now_desired - max(1, now_desired // 10)
        wanted = min(max(wanted, self.min_tasks), self.max_tasks)
        if wanted != now_desired:
            self._last = reading.minute
        return wanted


@dataclass
class StepScaling:
    """Adds tasks by how far the backlog is above a line, takes one away below another."""

    steps: tuple[tuple[float, int], ...]
    """Backlog of the whole queue from which on so many tasks are added."""
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

    policy: TargetTracking
    from_minute: int
    to_minute: int
    min_tasks: int

    def desired(self, reading: Reading, now_desired: int) -> int:
        announced = self.from_minute <= reading.minute < self.to_minute
        wanted = self.policy.desired(reading, now_desired)
        return max(wanted, self.min_tasks) if announced else wanted


def backlog_per_task(reading: Reading) -> float:
    """The template's expression: visible / IF(tasks > 0, tasks, 1)."""
    return reading.visible / (reading.running if reading.running > 0 else 1)


def from_template(**parameters: Any) -> TargetTracking:
    """Return the workers' policy as scaling.yaml has it. Raises KeyError if it is another kind."""
    templates = deployed(**parameters)
    target = templates.resource("scaling", "WorkerTarget")
    policy = templates.resource("scaling", "WorkerBacklog")
    tracking: Mapping[str, Any] = policy["TargetTrackingScalingPolicyConfiguration"]
    expressions = {
        query["Id"]: query["Expression"]
        for query in tracking["CustomizedMetricSpecification"]["Metrics"]
        if "Expression" in query
    }
    if expressions["backlog_per_task"] != "visible / IF(tasks > 0, tasks, 1)":
        raise KeyError("scaling.yaml tracks something else than what is simulated here")
    return TargetTracking(
        metric=backlog_per_task,
        target=tracking["TargetValue"],
        min_tasks=target["MinCapacity"],
        max_tasks=target["MaxCapacity"],
        scale_out_cooldown=tracking["ScaleOutCooldown"],
        scale_in_cooldown=tracking["ScaleInCooldown"],
    )
