"""What was measured of one worker; targets, simulation, tables and picture follow from it.

A new measurement is an edit here and `make scaling`, which writes it on into ecs/scaling.yaml,
ecs/parameters.example and README.md; tests/unit/ecs/test_scaling.py holds them together.
"""

import math
from typing import Final

from ecs.template import load

#: `python -m tests.bench.asked` on two cores that do nothing else: a worker of 5 processes, each
#: event with its emails, a mail server of 100 ms and a gateway of 150 ms.
CPU_MS_PER_EVENT: Final = 19.7
"""Milliseconds of one core, of worker and relay together."""
EVENTS_PER_SECOND: Final = 26.6
"""Where CPU is no limit: what the processes wait for is."""

#: Seconds that an event may wait: a buyer waits so long for a receipt without wondering.
WAIT_SECONDS: Final = 10
#: Of what a task can do, so much may arrive before there is another one.
ARRIVALS_PART: Final = 0.7

_WORKER: Final = load("worker").parameters["WorkerCpu"]
#: CPU units, 1024 to a core.
SIZES: Final = tuple(int(size) for size in _WORKER["AllowedValues"])
DEFAULT_SIZE: Final = int(_WORKER["Default"])


def events_per_second(cpu_units: int) -> int:
    """Return what a task of this size does: what its CPU is enough for, and its waits let."""
    return math.floor(min(cpu_units / 1024 * 1000 / CPU_MS_PER_EVENT, EVENTS_PER_SECOND))


def cpu_at_full_load(cpu_units: int) -> float:
    """Return the per cent of its CPU that a task of this size uses when events always wait."""
    return events_per_second(cpu_units) * CPU_MS_PER_EVENT / (cpu_units / 1024 * 1000) * 100


def backlog_per_task(cpu_units: int) -> int:
    """Return how many events may wait for each task."""
    return WAIT_SECONDS * events_per_second(cpu_units)


def arrivals_per_task(cpu_units: int) -> int:
    """Return how many events may be sent in a minute for each task."""
    return round(ARRIVALS_PART * 60 * events_per_second(cpu_units))


def gigabytes(cpu_units: int) -> float:
    """Return the least memory that Fargate sells with so much CPU."""
    return cpu_units / 512
