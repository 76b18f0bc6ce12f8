"""What the project wants to reach, against what was measured."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.bench.bench import Numbers
from tests.bench.contestants import BATCH_LOOP, CONSUMER_BY_FIVE, OURS, Contestant
from tests.bench.report import Table
from tests.bench.subject import HERE

Measure = Callable[[Numbers], float | None]


@dataclass(frozen=True)
class Goal:
    what: str
    measure: Measure = lambda numbers: None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def wanted(self) -> str:
        return f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"

    def is_met(self, value: float) -> bool:
        if self.at_least is not None:
            return value >= self.at_least
        return self.at_most is not None and value <= self.at_most


def _peer(what: str, peer: Contestant) -> Measure:
    return lambda numbers: numbers.ratio(OURS.name, what, peer.name)


def _here(what: str) -> Measure:
    return lambda numbers: numbers.median(HERE.name, what)


def _ours(what: str) -> Measure:
    return lambda numbers: numbers.median(OURS.name, what)


def _within(what: str, to: str) -> Measure:
    return lambda numbers: numbers.ratio(HERE.name, what, HERE.name, to)


GOALS = (
    Goal("no-op at 10 ms ÷ boto3 by ten", _peer("no-op 10 ms", BATCH_LOOP), at_least=1.0),
    Goal("no-op at 0 ms ÷ boto3 by ten", _peer("no-op 0 ms", BATCH_LOOP), at_least=0.9),
    Goal(
        "no-op at 10 ms ÷ sqs-consumer, five", _peer("no-op 10 ms", CONSUMER_BY_FIVE), at_least=1.1
    ),
    Goal("PostgreSQL sessions per 1,000 events", _ours("sessions per 1,000 events"), at_most=10),
    *(
        Goal(
            f"checkout's p99, SQS {health} ÷ healthy",
            _within(f"checkout, SQS {health}, p99", "checkout, p99"),
            at_most=1.1,
        )
        for health in ("hanging", "refusing", "slow")
    ),
    Goal(
        "checkouts/s of one product ÷ of twenty",
        _within("one product, requests/s", "twenty products, requests/s"),
        at_least=0.7,
    ),
    Goal("relay, rows/s at 10 ms", _here("relay, rows/s"), at_least=2000),
    Goal("relay, last third ÷ first third", _here("relay, last third ÷ first"), at_least=0.9),
    *(
        Goal(f"{what}, large ÷ empty", _here(f"{what}, large ÷ empty"), at_most=1.2)
        for what in ("claim", "webhook", "checkout", "idle relay pass")
    ),
    Goal(
        "operator's pages, large ÷ empty",
        _here("operator's pages, large ÷ empty at most"),
        at_most=3,
    ),
    Goal(
        "worker's memory, after 20,000 events ÷ after 2,000",
        _ours("memory after all ÷ after a tenth"),
        at_most=1.05,
    ),
)

#: Of this checkout ÷ of the one that it is compared with.
AGAINST = {
    "shop 0 ms": Goal("shop's handler at 0 ms, events/s", at_least=3),
    "shop 10 ms": Goal("shop's handler at 10 ms, events/s", at_least=3),
    "checkout, requests/s": Goal("checkout, requests/s", at_least=2),
    "checkout, p99": Goal("checkout, p99 ms", at_most=0.6),
    "webhook, requests/s": Goal("webhook, requests/s", at_least=2),
    "webhook, p99": Goal("webhook, p99 ms", at_most=0.6),
}

#: Compared without a goal.
ALSO = (
    *("no-op 0 ms", "no-op 10 ms", "sessions per 1,000 events", "memory after all ÷ after a tenth"),
    *("one product, requests/s", "twenty products, requests/s", "relay, rows/s", "relay, MB more"),
)


def goals(numbers: Numbers) -> Table:
    """Each goal of which everything was measured."""
    table = Table("Goals", ["", "goal", "measured", "met"])
    for goal in GOALS:
        value = goal.measure(numbers)
        if value is not None:
            table.rows.append(
                [goal.what, goal.wanted, _number(value), "yes" if goal.is_met(value) else "no"]
            )
    return table


def against(numbers: Numbers, *, here: tuple[str, str], other: tuple[str, str]) -> Table:
    """This checkout beside another one. Either is named as a subject and as a contestant."""
    head = ["", other[0], "here", "here ÷ it", "goal", "met"]
    table = Table(f"This checkout against {other[0]}, medians of runs in alternation", head)
    for key in (*AGAINST, *ALSO):
        goal = AGAINST.get(key)
        for mine, theirs in zip(here, other, strict=True):
            before, after = numbers.median(theirs, key), numbers.median(mine, key)
            if before is None or after is None:
                continue
            ratio = after / before if before else float("inf")
            met = (goal.wanted, "yes" if goal.is_met(ratio) else "no") if goal else ("", "")
            what = goal.what if goal else key
            table.rows.append([what, _number(before), _number(after), _number(ratio), *met])
    return table


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"
