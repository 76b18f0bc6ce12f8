"""Measure all contestants, print the tables, and write them to var/bench.md.

    python -m tests.bench [--only NAME …] [--skip-shop] [--skip-quiet]

Takes about six minutes. Times decide nothing: the exit status is 1 only if a contestant lost an
event, or if skincare.sqs did one twice or left its message in the queue.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from skincare.local.sqs import CLIENT_ENVIRONMENT
from tests.bench import contestants as who
from tests.bench.contestants import Contestant
from tests.bench.measure import ROOT, worker
from tests.bench.report import Results
from tests.bench.server import BenchServer, bench_server
from tests.bench.shop_orders import paid_orders, shop
from tests.bench.work import Document

REPORT = ROOT / "var" / "bench.md"
LATENCIES_MS = (0, 10)
IDLE_SECONDS = 15
SLOW_EVENTS = 40  # at one a second
FAST_EVENTS = 200  # at twenty a second


def events(count: int) -> list[Document]:
    """Events in order, of no order that exists."""
    run = uuid4().hex[:8]
    return [
        {
            "event_id": f"bench-{run}-{number}",
            "event_type": "payment.processed",
            "order_id": str(uuid4()),
            "payment_id": str(uuid4()),
            "user_id": "guest",
            "amount_rupiah": 125_000,
            "created_at": "2026-11-11T00:00:00+07:00",
        }
        for number in range(count)
    ]


class Bench:
    def __init__(self, server: BenchServer, folder: Path, chosen: Sequence[Contestant]) -> None:
        self.server = server
        self.folder = folder
        self.chosen = chosen
        self.results = Results(server.name)

    def backlog(
        self,
        handler: str,
        make: Callable[[int], list[Document]],
        environment: dict[str, str],
    ) -> None:
        """How fast each contestant works off a backlog, one after the other."""
        for contestant in self.chosen:
            if handler not in contestant.backlog:
                continue
            count = min(contestant.backlog[handler], self.server.max_backlog)
            with worker(
                self.server, contestant, handler, folder=self.folder, environment=environment
            ) as running:
                for added in LATENCIES_MS:
                    say(f"{contestant.name}: {count} events, {handler}, {added} ms")
                    result = running.throughput(make(count), latency=added / 1000)
                    self.results.throughput[contestant.name, handler, added] = result
                self.server.set_latency(0)

    def quiet(self) -> None:
        """What each does with little or nothing to do.

        Side by side where the load is next to nothing, to save the reader's time.
        """
        with ExitStack() as stack:
            running = {
                contestant.name: stack.enter_context(
                    worker(self.server, contestant, "no-op", folder=self.folder, environment={})
                )
                for contestant in self.chosen
                if contestant.when_quiet
            }
            for one in running.values():
                one.warm_up(events(who.PROCESSES))
            names = list(running)
            with ThreadPoolExecutor(len(names)) as pool:
                say(f"all: {IDLE_SECONDS} s idle")
                idle = pool.map(lambda name: running[name].idle_cpu(seconds=IDLE_SECONDS), names)
                self.results.idle = dict(zip(names, idle, strict=True))
                say(f"all: {SLOW_EVENTS} events, one a second")
                slow = pool.map(
                    lambda name: running[name].latency(events(SLOW_EVENTS), per_second=1), names
                )
                for name, result in zip(names, slow, strict=True):
                    self.results.latency[name, 1] = result
            for name, one in running.items():
                say(f"{name}: {FAST_EVENTS} events, twenty a second")
                self.results.latency[name, 20] = one.latency(events(FAST_EVENTS), per_second=20)


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="contestants, by part of a name")
    parser.add_argument("--skip-shop", action="store_true", help="only the handler without work")
    parser.add_argument("--skip-quiet", action="store_true", help="only the backlogs")
    options = parser.parse_args()
    chosen = [
        contestant
        for contestant in who.ALL
        if not options.only or any(part in contestant.name for part in options.only)
    ]
    # No call can reach an account at AWS; and no email leaves.
    os.environ.pop("AWS_PROFILE", None)
    os.environ.update(CLIENT_ENVIRONMENT, EMAIL_URL="dummymail://")
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, bench_server() as server:
        bench = Bench(server, Path(folder), chosen)
        bench.backlog("no-op", events, {})
        if not options.skip_shop:
            with shop() as environment:
                bench.backlog("shop", paid_orders, environment)
        if not options.skip_quiet:
            bench.quiet()
    results = bench.results
    tables = results.tables(chosen)
    print("\n\n".join([results.about(), *(table.plain() for table in tables)]))
    for remark in results.remarks():
        print(remark)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n\n".join([results.about(), *(t.markdown() for t in tables)]) + "\n")
    print(f"\nwritten to {REPORT.relative_to(ROOT)}")
    faults = results.faults()
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
