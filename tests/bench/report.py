"""The measured numbers as tables: aligned for a terminal, and as Markdown."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.contestants import OURS, Contestant
from tests.bench.measure import Latency, Throughput

ABSENT = "-"


@dataclass
class Table:
    title: str
    head: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)

    def plain(self) -> str:
        lines = [self.head, *self.rows]
        widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
        text = ["  ".join(_padded(line, widths)) for line in lines]
        rule = "  ".join("-" * width for width in widths)
        return "\n".join([self.title, "", text[0], rule, *text[1:]])

    def markdown(self) -> str:
        lines = [self.head, ["---", *["---:"] * (len(self.head) - 1)], *self.rows]
        return "\n".join(
            [f"{self.title}:", "", *("| " + " | ".join(line) + " |" for line in lines)]
        )


def _padded(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *rest = line
    return [first.ljust(widths[0])] + [
        cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)
    ]


def _ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def machine(server: str) -> str:
    """What the numbers hold for."""
    return (
        f"{os.cpu_count()} cores ({_processor()}), Python {platform.python_version()}, "
        f"SQS server: {server}, PostgreSQL on the same machine without fsync. Workers have 5 "
        "processes, loops 5 threads. A latency is added to each call of SQS."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


@dataclass
class Consumers:
    """What was measured of consumers of the queue. Added latencies are in milliseconds."""

    server: str
    throughput: dict[tuple[str, str, int], Throughput] = field(default_factory=dict)
    """By contestant, handler and added latency."""
    latency: dict[tuple[str, int], Latency] = field(default_factory=dict)
    """By contestant and events per second."""
    idle: dict[str, float] = field(default_factory=dict)

    def backlog_tables(self, handler: str, contestants: Sequence[Contestant]) -> list[Table]:
        what = "handler that does nothing" if handler == "no-op" else "the shop's handler"
        tables = [self._throughput(contestants, handler, f"Events per second, {what}")]
        if handler == "no-op":
            tables.append(self._requests(contestants))
        return [table for table in tables if table.rows]

    def faults(self) -> list[str]:
        """A sentence for each loss, and for anything but exact counts from our own transport."""
        sentences = []
        for (name, handler, added), result in self.throughput.items():
            where = f"{name}, {handler}, {added} ms"
            if result.lost:
                sentences.append(f"{where}: {result.lost} of {result.events} events were lost.")
            if name == OURS.name and result.repeated:
                sentences.append(f"{where}: {result.repeated} events were done twice.")
            if name == OURS.name and result.left:
                sentences.append(f"{where}: {result.left} messages were not deleted.")
        sentences += [
            f"{name}, {rate} events/s: {result.lost} of {result.events} events were lost."
            for (name, rate), result in self.latency.items()
            if result.lost
        ]
        return sentences

    def remarks(self) -> list[str]:
        """What the others did that is no failure of the run."""
        return [
            f"{name}, {handler}, {added} ms: "
            f"{result.repeated} done twice, {result.left} not deleted."
            for (name, handler, added), result in self.throughput.items()
            if name != OURS.name and (result.repeated or result.left)
        ]

    @staticmethod
    def notes() -> list[str]:
        """What a reader must know to compare the rows."""
        return [
            "Stock Celery acknowledges before the work unless told otherwise: with its defaults, "
            "what a process was working on is lost with it.",
            "Late ack and prefetch 1 are the settings under which it promises what skincare.sqs "
            "does; the tuned one fetches fifty ahead, whose visibility ticks meanwhile.",
            "The loop, sqs-consumer and taskiq have no time limits that end a handler by force, "
            "and no process of its own for each event.",
            "Dramatiq and taskiq delete messages one by one; Dramatiq's processes have 8 threads "
            "each, as it ships.",
        ]

    def _throughput(self, contestants: Sequence[Contestant], handler: str, title: str) -> Table:
        head = ["", "0 ms", "skincare.sqs ÷ it", "10 ms", "skincare.sqs ÷ it"]
        table = Table(title, head)
        for contestant in contestants:
            cells = []
            for added in (0, 10):
                it = self.throughput.get((contestant.name, handler, added))
                ours = self.throughput.get((OURS.name, handler, added))
                cells.append(f"{it.per_second:.0f}" if it else ABSENT)
                cells.append(_ratio(ours.per_second / it.per_second) if it and ours else ABSENT)
            if set(cells) != {ABSENT}:
                table.rows.append([contestant.name, *cells])
        return table

    def _requests(self, contestants: Sequence[Contestant]) -> Table:
        table = Table(
            "Calls of SQS per event under backlog (no-op, 10 ms)",
            ["", "sends", "receives", "deletes", "all", "÷ skincare.sqs"],
        )
        ours = self.throughput.get((OURS.name, "no-op", 10))
        for contestant in contestants:
            if it := self.throughput.get((contestant.name, "no-op", 10)):
                numbers = (it.sends, it.receives, it.deletes, it.requests)
                ratio = _ratio(it.requests / ours.requests) if ours else ABSENT
                table.rows.append([contestant.name, *(f"{n:.2f}" for n in numbers), ratio])
        return table

    def waiting(self, contestants: Sequence[Contestant]) -> Table:
        table = Table(
            "Milliseconds from send to done (no-op, 0 ms), and the idle main process",
            ["", "p50 at 1/s", "p99 at 1/s", "p50 at 20/s", "p99 at 20/s", "CPU idle"],
        )
        for contestant in contestants:
            if contestant.name in self.idle:
                row = [contestant.name]
                for rate in (1, 20):
                    it = self.latency.get((contestant.name, rate))
                    row += [f"{it.p50:.0f}", f"{it.p99:.0f}"] if it else [ABSENT, ABSENT]
                table.rows.append([*row, f"{self.idle[contestant.name]:.1f} %"])
        return table
