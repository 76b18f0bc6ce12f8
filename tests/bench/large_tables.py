"""The shop after two million events, beside the same shop with next to none: does it get slower?

`large_rows` fills the tables.
"""

import json
import re
import statistics
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote

from tests.bench import load
from tests.bench.bench import Bench, say
from tests.bench.large_rows import fill
from tests.bench.midtrans import settlements
from tests.bench.operators_pages import look_at_all, words_of
from tests.bench.report import Table
from tests.bench.shop import Shop, checkouts
from tests.bench.subject import HERE, Subject

PATH_REPEATS = 40
PATH_TURNS = 25
"""Many short turns: what else the machine does lasts longer than one, and meets both shops."""
PAGE_REPEATS = 5
FEW_EVENTS = 2_000
"""The empty shop is not quite empty: every list and filter has a page to show, as the full one."""
SHOWN = 12
"""So many of the operator's pages are in the table: those that grew most."""

Times = dict[str, tuple[list[float], list[float]]]
"""Milliseconds by what is done: in the empty shop, and in the full one."""


class LargeTables:
    """Only this checkout is measured: the question is how it bears its own data.

    The two shops are measured in turns, so that what else happens on the machine meets both.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._shops: tuple[Shop, Shop] | None = None
        self._tables: list[Table] = []

    def measure(self, subject: Subject) -> None:
        if subject is not HERE:
            return
        bench, numbers = self.bench, self.bench.numbers
        if self._shops is None:
            self._shops = bench.shop(subject), bench.shop(subject)
            sizes = min(FEW_EVENTS, bench.rows), bench.rows
            for shop, events in zip(self._shops, sizes, strict=True):
                with shop.connect() as connection:
                    fill(connection, events=events)
                    connection.execute("VACUUM ANALYZE")
        with ExitStack() as stack:
            say("measuring the paths")
            ports = [stack.enter_context(shop.web()) for shop in self._shops]
            paths = self._paths(ports)
            say("measuring the operator's pages")
            pages = self._pages(ports)
        for what, times in paths.items():
            numbers.add(subject.name, f"{what}, large ÷ empty", _growth(times))
        worst = sorted(pages, key=lambda page: -_growth(pages[page]))
        growth = _growth(pages[worst[0]])
        numbers.add(subject.name, "operator's pages, large ÷ empty at most", growth)
        head = ["", "ms, empty", "ms, large", "ratio"]
        self._tables = [
            Table(f"With {bench.rows:,} events in the tables (warm, one client, medians)", head),
            Table(f"The operator's pages: the {SHOWN} of {len(pages)} that grew most", head),
        ]
        for table, measured, names in (
            (self._tables[0], paths, list(paths)),
            (self._tables[1], pages, worst[:SHOWN]),
        ):
            for name in names:
                few, many = map(statistics.median, measured[name])
                table.rows.append([name, f"{few:.2f}", f"{many:.2f}", f"{many / few:.2f}"])

    def tables(self) -> list[Table]:
        return self._tables

    def _paths(self, ports: Sequence[int]) -> Times:
        assert self._shops
        repeats = self.bench.size(PATH_REPEATS, small=5)
        times: Times = {}
        for _ in range(self.bench.size(PATH_TURNS, small=1)):
            for which, (shop, port) in enumerate(zip(self._shops, ports, strict=True)):
                medians = inside(shop, "measure", str(repeats))
                orders = load.run(
                    port, checkouts(shop.skus(), repeats, method="midtrans"), clients=1, wanted=201
                )
                placed = [answer.json() for answer in orders.answers]
                webhooks = load.run(port, settlements(shop, placed), clients=1, wanted=200)
                for what, median in {
                    "checkout": orders.p50,
                    "webhook": webhooks.p50,
                    **medians,
                }.items():
                    times.setdefault(what, ([], []))[which].append(median)
        return times

    def _pages(self, ports: Sequence[int]) -> Times:
        """Each page, in turns with the same one of the other shop."""
        assert self._shops
        with self._shops[1].connect() as connection:
            words = words_of(connection)
        operators = [_Operator(shop, port) for shop, port in zip(self._shops, ports, strict=True)]
        times: Times = {}

        def look(path: str) -> str:
            pages = ["", ""]
            for turn in range(self.bench.size(PAGE_REPEATS, small=1) + 1):
                for which, operator in enumerate(operators):
                    pages[which], milliseconds = operator.look(path)
                    if turn:  # the first one warms up
                        times.setdefault(_name(path, words), ([], []))[which].append(milliseconds)
            return pages[0]  # what it links to is in both

        with ExitStack() as stack:
            for operator in operators:
                stack.callback(operator.close)
            look_at_all(look, words)
        return times


class _Operator:
    """Somebody who is signed in and looks at pages."""

    def __init__(self, shop: Shop, port: int) -> None:
        self._client = load.Client(port)
        self._cookie = f"sessionid={inside(shop, 'session')}"

    def look(self, path: str) -> tuple[str, float]:
        """The page, and how many milliseconds it took."""
        answer = self._client.send(load.get(path, Cookie=self._cookie))
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {answer.body[:200]!r}")
        return answer.body.decode(), answer.seconds * 1000

    def close(self) -> None:
        self._client.close()


def _growth(times: tuple[list[float], list[float]]) -> float:
    few, many = map(statistics.median, times)
    return many / few


def _name(path: str, words: dict[str, str]) -> str:
    """The path, with the kind of a search's word instead of the word, and no dates."""
    for kind, word in words.items():
        path = path.replace(quote(word), f"<{kind}>")
    return re.sub(r"\d{4}-\d\d-\d\d[^&]*", "<day>", path)


def inside(shop: Shop, *arguments: str) -> Any:
    """Run tests.bench.inside in the shop's own environment; return what it prints."""
    done = subprocess.run(
        [shop.subject.python, "-m", "tests.bench.inside", *arguments],
        cwd=shop.subject.root,
        env=shop.environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
