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
from collections.abc import Sequence
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
from tests.bench.shop_orders import Shop, shop
from tests.bench.work import Document

STARTED = time.monotonic()
ENVIRONMENT = {
    **CLIENT_ENVIRONMENT,  # no call can reach an account at AWS
    "DJANGO_SETTINGS_MODULE": "tests.settings",
    "EMAIL_URL": "dummymail://",  # emails are written and go nowhere
    "LOG_LEVEL": "WARNING",  # here; the workers log as in production
}
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

    def no_op_backlog(self) -> None:
        """How fast each contestant works off a backlog of nothing, one after the other."""
        for contestant in self.chosen:
            count = min(contestant.backlog, self.server.max_backlog)
            batches = {added: events(count) for added in LATENCIES_MS}
            self._backlog(contestant, "no-op", batches, {})

    def shop_backlog(self, shop: Shop) -> None:
        """How fast each works off a backlog of paid orders."""
        half = len(shop.events) // 2
        for contestant in self.chosen:
            count = min(contestant.shop_backlog, half)
            if count:
                batches = {0: shop.events[:count], 10: shop.events[half : half + count]}
                self._backlog(contestant, "shop", batches, shop.copy())

    def _backlog(
        self,
        contestant: Contestant,
        handler: str,
        batches: dict[int, list[Document]],
        environment: dict[str, str],
    ) -> None:
        with worker(
            self.server, contestant, handler, folder=self.folder, environment=environment
        ) as running:
            for added, batch in batches.items():
                say(f"{contestant.name}: {len(batch)} events, {handler}, {added} ms")
                result = running.throughput(batch, latency=added / 1000)
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
    print(f"{time.monotonic() - STARTED:4.0f} s  {line}", file=sys.stderr, flush=True)


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
    os.environ.pop("AWS_PROFILE", None)
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, bench_server() as server:
        bench = Bench(server, Path(folder), chosen)
        bench.no_op_backlog()
        if not options.skip_shop:
            say(f"placing {2 * who.SHOP_BACKLOG} orders")
            with shop(2 * who.SHOP_BACKLOG) as orders:
                bench.shop_backlog(orders)
        if not options.skip_quiet:
            bench.quiet()
    results = bench.results
    tables = results.tables(chosen)
    notes = "\n".join(f"- {note}" for note in results.notes())
    print("\n\n".join([results.about(), *(table.plain() for table in tables), notes]))
    for remark in results.remarks():
        print(remark)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(
        "\n\n".join([results.about(), *(table.markdown() for table in tables), notes]) + "\n"
    )
    print(f"\nwritten to {REPORT.relative_to(ROOT)}")
    faults = results.faults()
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
