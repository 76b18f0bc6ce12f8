"""The consumers of the queue side by side: with no work, with the shop's, and with little to do."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from tests.bench import contestants as who
from tests.bench.bench import Bench, events, say
from tests.bench.contestants import Contestant
from tests.bench.measure import Throughput, Worker, worker
from tests.bench.paid_orders import PaidOrders, place
from tests.bench.report import Consumers, Table
from tests.bench.subject import HERE, Subject
from tests.bench.work import Document

LATENCIES_MS = (0, 10)
IDLE_SECONDS = 15
SLOW_EVENTS = 40  # at one a second
FAST_EVENTS = 200  # at twenty a second


class _Consumers:
    """`others` run beside this checkout only; of another one, only its transport is measured."""

    def __init__(self, bench: Bench, others: Sequence[Contestant]) -> None:
        self.bench = bench
        self.others = [contestant for contestant in others if contestant.is_there()]
        self.results = Consumers(bench.server.name)

    def contestants(self, subject: Subject) -> list[Contestant]:
        mine = who.ours(subject)
        return [*self.others, mine] if subject is HERE else [mine]

    def backlogs(
        self,
        contestant: Contestant,
        handler: str,
        batches: dict[int, list[Document]],
        environment: dict[str, str],
    ) -> None:
        """Let it work off each batch with that many milliseconds added to each call."""
        bench = self.bench
        with worker(
            bench.server, contestant, handler, folder=bench.folder, environment=environment
        ) as running:
            for added, batch in batches.items():
                say(f"{contestant.name}: {len(batch)} events, {handler}, {added} ms")
                result = running.throughput(batch, latency=added / 1000)
                self.results.throughput[contestant.name, handler, added] = result
                bench.numbers.add(contestant.name, f"{handler} {added} ms", result.per_second)
            bench.server.set_latency(0)


class NoOp(_Consumers):
    """How fast each works off a backlog of nothing."""

    def measure(self, subject: Subject) -> None:
        for contestant in self.contestants(subject):
            count = self.bench.size(min(contestant.backlog, self.bench.server.max_backlog))
            batches = {added: events(count) for added in LATENCIES_MS}
            self.backlogs(contestant, "no-op", batches, {})

    def tables(self) -> list[Table]:
        self.bench.faults += self.results.faults()
        return self.results.backlog_tables("no-op", [*self.others, who.OURS])


class ShopHandler(_Consumers):
    """How fast each works off a backlog of paid orders, and how many sessions of PostgreSQL that
    takes."""

    def __init__(self, bench: Bench, others: Sequence[Contestant]) -> None:
        super().__init__(bench, [other for other in others if other.shop_backlog])
        self._orders: dict[str, PaidOrders] = {}

    def measure(self, subject: Subject) -> None:
        orders = self._paid_orders(subject)
        half = len(orders.events) // 2
        for contestant in self.contestants(subject):
            count = min(contestant.shop_backlog, half)
            batches = {0: orders.events[:count], 10: orders.events[half : half + count]}
            database_url = self.bench.databases.create(orders.database_url)
            self.backlogs(contestant, "shop", batches, {"DATABASE_URL": database_url})
            sessions = self.bench.databases.sessions(database_url)
            self.bench.numbers.add(
                contestant.name, "sessions per 1,000 events", sessions / (2 * count) * 1000
            )

    def _paid_orders(self, subject: Subject) -> PaidOrders:
        if subject.name not in self._orders:
            count = 2 * self.bench.size(who.SHOP_BACKLOG)
            say(f"{subject.name}: placing {count} orders")
            self._orders[subject.name] = place(self.bench.shop(subject), self.bench.server, count)
        return self._orders[subject.name]

    def tables(self) -> list[Table]:
        self.bench.faults += self.results.faults()
        return self.results.backlog_tables("shop", [*self.others, who.OURS])


class Quiet(_Consumers):
    """What each does with little or nothing to do; side by side where that is next to no load."""

    def __init__(self, bench: Bench, others: Sequence[Contestant]) -> None:
        super().__init__(bench, [other for other in others if other.when_quiet])

    def measure(self, subject: Subject) -> None:
        bench = self.bench
        with ExitStack() as stack:
            running = {
                contestant.name: stack.enter_context(
                    worker(bench.server, contestant, "no-op", folder=bench.folder, environment={})
                )
                for contestant in self.contestants(subject)
            }
            for one in running.values():
                one.warm_up(events(who.PROCESSES))
            names = list(running)
            with ThreadPoolExecutor(len(names)) as pool:
                seconds = bench.size(IDLE_SECONDS, small=1)
                say(f"all: {seconds} s idle")
                idle = pool.map(lambda name: running[name].idle_cpu(seconds=seconds), names)
                self.results.idle.update(zip(names, idle, strict=True))
                few = bench.size(SLOW_EVENTS, small=3)
                say(f"all: {few} events, one a second")
                slow = pool.map(
                    lambda name: running[name].latency(events(few), per_second=1), names
                )
                for name, result in zip(names, slow, strict=True):
                    self.results.latency[name, 1] = result
            many = bench.size(FAST_EVENTS)
            for name, one in running.items():
                say(f"{name}: {many} events, twenty a second")
                self.results.latency[name, 20] = one.latency(events(many), per_second=20)

    def tables(self) -> list[Table]:
        self.bench.faults += self.results.faults()
        return [self.results.waiting([*self.others, who.OURS])]


class Memory(_Consumers):
    """Whether the shop's worker grows: its own memory after a tenth of the events and after all."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, [])
        self._rows: list[Sequence[str]] = []

    def measure(self, subject: Subject) -> None:
        bench = self.bench
        contestant = who.ours(subject)
        count = bench.size(20_000, small=200)
        bare = bench.databases.shop(subject, bench.server, bench.folder).database_url
        with worker(
            *(bench.server, contestant, "shop"),
            folder=bench.folder,
            environment={"DATABASE_URL": bare},
        ) as running:
            say(f"{contestant.name}: memory over {count} events")
            lost = self._work(running, count // 10)
            early = running.memory()
            for _ in range(9):
                lost += self._work(running, count // 10)
            late = running.memory()
        if lost:
            bench.faults.append(f"{contestant.name}: {lost} of {count} events were lost.")
        growth = sum(late) / sum(early)
        bench.numbers.add(contestant.name, "memory after all ÷ after a tenth", growth)
        cells = [f"{megabytes:.1f}" for pair in zip(early, late, strict=True) for megabytes in pair]
        self._rows.append([contestant.name, *cells, f"{growth:.3f}"])

    @staticmethod
    def _work(running: Worker, count: int) -> int:
        # A type that nobody handles: claimed, recorded as skipped, and its message deleted.
        result: Throughput = running.throughput(events(count, event_type="bench.event"), latency=0)
        return result.lost

    def tables(self) -> list[Table]:
        head = ["", "main, early", "main, late", "pool, early", "pool, late", "late ÷ early"]
        return [Table("Memory of the worker over 20,000 events, MB of its own", head, self._rows)]
