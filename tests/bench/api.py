"""The API under load: checkout and webhook while SQS is well or not, one product or twenty, and the
same work done inside the request."""

from collections import defaultdict
from collections.abc import Sequence

from tests.bench import load
from tests.bench.bench import Bench, say
from tests.bench.load import Load
from tests.bench.midtrans import settlements
from tests.bench.paid_orders import METHOD
from tests.bench.report import ABSENT, Table
from tests.bench.server import Health
from tests.bench.shop import CLIENTS, Shop, checkouts
from tests.bench.slow_mail import MAIL_SECONDS, slow_mail
from tests.bench.subject import HERE, Subject

CHECKOUTS = 1000
WARM_UP = 64
TROUBLES: tuple[Health, ...] = ("slow", "refusing", "hanging")
HEAD = ["", "requests/s", "p50 ms", "p99 ms"]


class _Requests:
    """Keeps what was measured by subject and kind of request."""

    title: str

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._kinds: dict[str, list[str]] = defaultdict(list)

    def send(
        self, subject: Subject, kind: str, port: int, requests: Sequence[bytes], wanted: int
    ) -> Load:
        say(f"{subject.name}: {len(requests)} times {kind}")
        result = load.run(port, requests, clients=CLIENTS, wanted=wanted)
        self.bench.numbers.add(subject.name, f"{kind}, requests/s", result.per_second)
        self.bench.numbers.add(subject.name, f"{kind}, p50", result.p50)
        self.bench.numbers.add(subject.name, f"{kind}, p99", result.p99)
        if kind not in self._kinds[subject.name]:
            self._kinds[subject.name].append(kind)
        return result

    def tables(self) -> list[Table]:
        table = Table(self.title, HEAD)
        for name, kinds in self._kinds.items():
            for kind in kinds:
                medians = [
                    self.bench.numbers.median(name, f"{kind}, {what}")
                    for what in ("requests/s", "p50", "p99")
                ]
                cells = [ABSENT if it is None else f"{it:.0f}" for it in medians]
                table.rows.append([kind if name == HERE.name else f"{kind} ({name})", *cells])
        return [table]


class Api(_Requests):
    title = f"The API: two processes, {CLIENTS} clients, medians"

    def measure(self, subject: Subject) -> None:
        bench = self.bench
        shop = bench.shop(subject)
        skus = shop.skus()
        count = bench.size(CHECKOUTS)
        with shop.web() as port:
            _warm_up(port, skus, bench)
            placed = self.send(
                subject, "checkout", port, checkouts(skus, count, method="midtrans"), 201
            )
            orders = [answer.json() for answer in placed.answers]
            self.send(subject, "webhook", port, settlements(shop, orders), 200)
            for health in TROUBLES:
                bench.server.set_health(health)
                try:
                    requests = checkouts(skus, count, method="midtrans")
                    self.send(subject, f"checkout, SQS {health}", port, requests, 201)
                finally:
                    bench.server.set_health("healthy")
                # What healthy means just then: the machine may have become slower meanwhile.
                requests = checkouts(skus, count, method="midtrans")
                self.send(subject, "checkout", port, requests, 201)


class HotProduct(_Requests):
    """Everybody wants the same product."""

    title = f"Checkouts of one product and of twenty: two processes, {CLIENTS} clients, medians"

    def measure(self, subject: Subject) -> None:
        shop = self.bench.shop(subject)
        skus = shop.skus()[:20]
        with shop.web() as port:
            _warm_up(port, skus, self.bench)
            for kind, chosen in (("twenty products", skus), ("one product", skus[:1])):
                count = self.bench.size(CHECKOUTS)
                requests = checkouts(chosen, count, method="midtrans", items=1)
                self.send(subject, kind, port, requests, 201)


class Inline(_Requests):
    """What a checkout would cost whose request pays the order and sends its emails itself."""

    title = (
        f"Checkout with its effects and two emails, mail server of {MAIL_SECONDS * 1000:.0f} ms: "
        f"two processes, {CLIENTS} clients"
    )

    def measure(self, subject: Subject) -> None:
        if subject is not HERE:
            return
        count = self.bench.size(CHECKOUTS // 2)
        with slow_mail() as port_of_mail:
            mail = {"EMAIL_URL": f"smtp://127.0.0.1:{port_of_mail}"}
            inline = {"DJANGO_SETTINGS_MODULE": "tests.bench.inline.settings"}
            for kind, environment in (
                ("left to the worker", mail),
                ("inside the request", mail | inline),
            ):
                shop: Shop = self.bench.shop(subject)
                skus = shop.skus()
                with shop.web(**environment) as port:
                    _warm_up(port, skus, self.bench)
                    requests = checkouts(skus, count, method=METHOD)
                    self.send(subject, kind, port, requests, 201)


def _warm_up(port: int, skus: Sequence[str], bench: Bench) -> None:
    requests = checkouts(skus, bench.size(WARM_UP, small=8), method="midtrans")
    load.run(port, requests, clients=CLIENTS, wanted=201)
