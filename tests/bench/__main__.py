"""Measure this project, print the tables, and write them as Markdown to var/bench.md.

    python -m tests.bench [PART …] [--only NAME …] [--rounds N] [--against COMMIT] [--short]

Parts (default: all): no-op, shop, quiet, api, hot, inline, relay, large, memory. With --against,
the programs of that commit and of this checkout are measured in alternation, three rounds, and the
ratios printed. All parts take about half an hour; with --short, which leaves out the patient part
and most of the large tables, about half of that. Times decide nothing: the exit status is 1 only
if a consumer lost an event, or if skincare.sqs did one twice or left its message in the queue.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from skincare.local.sqs import CLIENT_ENVIRONMENT
from tests.bench import contestants as who
from tests.bench.api import Api, HotProduct, Inline
from tests.bench.bench import Bench, Part, say
from tests.bench.consumers import Memory, NoOp, Quiet, ShopHandler
from tests.bench.goals import against, goals
from tests.bench.large_tables import LargeTables
from tests.bench.relay_backlog import RelayBacklog
from tests.bench.report import Consumers, Table, machine
from tests.bench.server import bench_server
from tests.bench.shop import Databases
from tests.bench.subject import HERE, ROOT, Subject, commit

ENVIRONMENT = {
    **CLIENT_ENVIRONMENT,  # no call can reach an account at AWS
    "DJANGO_SETTINGS_MODULE": "tests.settings",
    "EMAIL_URL": "dummymail://",  # emails are written and go nowhere
    "LOG_LEVEL": "WARNING",  # here; the workers log as in production
}
REPORT = ROOT / "var" / "bench.md"
SMALL_REPORT = ROOT / "var" / "bench-small.md"
MILLIONS = 2_000_000
SHORT_ROWS = 300_000
PATIENT = "quiet"
"""This part waits for slow events, with each consumer."""
ROUNDS_AGAINST = 3

PARTS: dict[str, Callable[[Bench, list[who.Contestant]], Part]] = {
    "no-op": NoOp,
    "shop": ShopHandler,
    "quiet": Quiet,
    "api": lambda bench, _: Api(bench),
    "hot": lambda bench, _: HotProduct(bench),
    "inline": lambda bench, _: Inline(bench),
    "relay": lambda bench, _: RelayBacklog(bench),
    "large": lambda bench, _: LargeTables(bench),
    "memory": lambda bench, _: Memory(bench),
}
COMPARED = ("no-op", "shop", "api", "hot", "relay", "memory")
"""The parts that say something of another commit."""


def main() -> int:
    options = _options()
    os.environ.pop("AWS_PROFILE", None)
    os.environ.update(ENVIRONMENT)
    others = [
        contestant
        for contestant in (who.AGAINST if options.against else who.OTHERS)
        if not options.only or any(part in contestant.name for part in options.only)
    ]
    rounds = options.rounds or (ROUNDS_AGAINST if options.against else 1)
    with ExitStack() as stack:
        subjects = [HERE]
        if options.against:
            say(f"checking out {options.against}")
            subjects.insert(0, stack.enter_context(commit(options.against)))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        bench = Bench(
            server=stack.enter_context(bench_server()),
            databases=stack.enter_context(Databases()),
            folder=folder,
            rows=_rows(options),
            small=options.small,
        )
        tables = []
        for name in options.parts or _parts(options):
            part = PARTS[name](bench, others)
            for number in range(rounds):
                # Who comes first takes turns, too.
                for subject in subjects if number % 2 == 0 else reversed(subjects):
                    part.measure(subject)
            for table in part.tables():
                _print(table)
                tables.append(table)
    concluded = [goals(bench.numbers)]
    if options.against:
        concluded.append(_against(bench, subjects[0]))
    for table in concluded:
        _print(table)
    _write(bench, tables + concluded)
    for fault in bench.faults:
        print(f"FAILED: {fault}")
    return 1 if bench.faults else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="other consumers, by part of a name"
    )
    parser.add_argument("--rounds", type=int, help="how often each part is measured")
    parser.add_argument("--against", metavar="COMMIT", help="measure that commit's programs too")
    parser.add_argument("--rows", type=int, default=MILLIONS, help="events in the large tables")
    parser.add_argument(
        "--short",
        action="store_true",
        help=f"without `{PATIENT}`, and with {SHORT_ROWS:,} events in the large tables",
    )
    parser.add_argument("--small", action="store_true", help="next to no load: does it all work?")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(
            f"no part is called {', '.join(sorted(unknown))}: known are {', '.join(PARTS)}"
        )
    return options


def _parts(options: argparse.Namespace) -> list[str]:
    known = COMPARED if options.against else tuple(PARTS)
    return [name for name in known if not (options.short and name == PATIENT)]


def _rows(options: argparse.Namespace) -> int:
    most = 2000 if options.small else SHORT_ROWS if options.short else options.rows
    return min(options.rows, most)


def _against(bench: Bench, other: Subject) -> Table:
    return against(
        bench.numbers,
        here=(HERE.name, who.OURS.name),
        other=(other.name, who.ours(other).name),
    )


def _print(table: Table) -> None:
    """Print it as soon as it is known: what is cut off later has said something."""
    if table.rows:
        print(table.plain(), end="\n\n", flush=True)


def _write(bench: Bench, tables: list[Table]) -> None:
    about = machine(bench.server.name)
    notes = "\n".join(f"- {note}" for note in Consumers.notes())
    print("\n\n".join([about, notes]))
    known = [table.markdown() for table in tables if table.rows]
    report = SMALL_REPORT if bench.small else REPORT
    report.parent.mkdir(exist_ok=True)
    report.write_text("\n\n".join([about, *known, notes]) + "\n")
    print(f"\nwritten to {report.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main())
