"""What every part of the benchmark has at hand, and what a part is."""

import statistics
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from tests.bench.report import Table
from tests.bench.server import BenchServer
from tests.bench.shop import Databases, Shop
from tests.bench.subject import Subject
from tests.bench.work import Document

STARTED = time.monotonic()


@dataclass
class Numbers:
    """All measured numbers by who was measured and what: one for each round."""

    _values: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, who: str, what: str, value: float) -> None:
        self._values[who, what].append(value)

    def median(self, who: str, what: str) -> float | None:
        """None where it was not measured."""
        values = self._values.get((who, what))
        return statistics.median(values) if values else None

    def ratio(self, who: str, what: str, to: str, to_what: str | None = None) -> float | None:
        """The one median ÷ the other; None where one is missing."""
        above, below = self.median(who, what), self.median(to, to_what or what)
        return above / below if above is not None and below else None


@dataclass
class Bench:
    server: BenchServer
    databases: Databases
    folder: Path
    """Takes logs."""
    rows: int
    """Events in the large tables."""
    small: bool = False
    """A smoke test: everything once, with next to nothing to do."""
    numbers: Numbers = field(default_factory=Numbers)
    faults: list[str] = field(default_factory=list)
    """A sentence for each thing that makes the run fail."""

    def size(self, full: int, *, small: int = 40) -> int:
        """How many of something: `full`, or few in a smoke test."""
        return min(full, small) if self.small else full

    def shop(self, subject: Subject) -> Shop:
        """A shop on a new database with the catalogue."""
        return self.databases.shop(subject, self.server, self.folder)


class Part(Protocol):
    """One question to the subjects."""

    def measure(self, subject: Subject) -> None:
        """Measure it once; called again for each round."""

    def tables(self) -> list[Table]:
        """What came of all rounds."""


def say(line: str) -> None:
    """Tell whoever waits where it stands."""
    print(f"{time.monotonic() - STARTED:4.0f} s  {line}", file=sys.stderr, flush=True)


def events(count: int, *, event_type: str = "payment.processed") -> list[Document]:
    """Events of orders that do not exist."""
    run = uuid4().hex[:8]
    return [
        {
            "event_id": f"bench-{run}-{number}",
            "event_type": event_type,
            "order_id": str(uuid4()),
            "payment_id": str(uuid4()),
            "user_id": "guest",
            "amount_rupiah": 125_000,
            "created_at": "2026-11-11T00:00:00+07:00",
        }
        for number in range(count)
    ]
