"""Slow clients, guessers and hoarders: everybody else is answered, and it is printed how fast.

What is quiet and what is attacked is measured in turns, in one run. Only the answers are asserted.
"""

import itertools
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from uuid import uuid4

import pytest
import requests
from django.conf import settings

from orders.models import Product
from skincare.local.deadline import busyness
from tests.attack.slow_clients import slow_clients
from tests.attack.values import EXAMPLES
from tests.integration.orders.shop import a_product, numbers
from tests.integration.web.conftest import Web

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(1800),
]

SLOW_CLIENTS = 500
GUESSERS = 12
TURNS = 3
#: Requests in one turn.
CALLS = max(20, min(100, EXAMPLES))
Tell = Callable[[str], None]


@pytest.fixture(scope="module")
def guarded(serve: Callable[..., AbstractContextManager[Web]]) -> Iterator[Web]:
    """The API with its bounds on addresses and buyers, as in production."""
    with serve(LIMIT_BUYERS="true") as web:
        yield web


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Tell:
    def told(text: str) -> None:
        with capsys.disabled():
            print(f"\n  {text} (load {busyness():.1f} for each core)")

    return told


_addresses = (f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}" for n in itertools.count(1))


def check_out(web: Web, product: Product, *, pieces: int = 1, address: str = "") -> int:
    """One checkout of a new buyer; the status of its answer."""
    return web.post(
        "/v1/checkout",
        json={
            "items": [{"sku": product.sku, "quantity": pieces}],
            "email": f"buyer-{uuid4().hex}@example.com",
            "payment_method": "sandbox" if not address else "midtrans",
        },
        headers={
            "Idempotency-Key": uuid4().hex,
            # The last is what the load balancer saw; what is before it, anybody can send.
            "X-Forwarded-For": f"{next(_addresses)}, {address or next(_addresses)}",
        },
    ).status_code


def search(web: Web) -> int:
    return web.get("/v1/products", headers={"X-Forwarded-For": next(_addresses)}).status_code


def timed(call: Callable[[], int]) -> tuple[list[int], list[float]]:
    """The statuses and the seconds of one turn's calls."""
    statuses, seconds = [], []
    for _ in range(CALLS):
        started = time.monotonic()
        statuses.append(call())
        seconds.append(time.monotonic() - started)
    return statuses, seconds


def in_turns(
    call: Callable[[], int], attack: Callable[[], AbstractContextManager[object]]
) -> tuple[set[int], list[float], list[float]]:
    """Call in quiet and under the attack, in turns; all statuses, quiet and attacked seconds."""
    taken: tuple[list[float], list[float]] = ([], [])
    statuses: set[int] = set()
    call()  # the first opens the connections
    for turn in range(2 * TURNS):
        with attack() if turn % 2 else nullcontext():
            answers, seconds = timed(call)
        statuses |= set(answers)
        taken[turn % 2].extend(seconds)
    return statuses, *taken


def ratios(quiet: list[float], attacked: list[float]) -> str:
    """Median and 99th percentile under attack, against quiet."""
    p99 = [statistics.quantiles(seconds, n=100)[98] for seconds in (quiet, attacked)]
    p50 = [statistics.median(seconds) for seconds in (quiet, attacked)]
    return (
        f"p50 {p50[0] * 1000:.0f} -> {p50[1] * 1000:.0f} ms (x {p50[1] / p50[0]:.2f}), "
        f"p99 {p99[0] * 1000:.0f} -> {p99[1] * 1000:.0f} ms (x {p99[1] / p99[0]:.2f})"
    )


@contextmanager
def asked_for_health(web: Web, answers: Counter[int]) -> Iterator[None]:
    """Ask for /healthz and /readyz ten times a second meanwhile, and count the answers."""
    ended = threading.Event()

    def ask() -> None:
        for path in itertools.cycle(("/healthz", "/readyz")):
            if ended.wait(0.1):
                return
            try:
                answers[requests.get(web.url(path), timeout=10).status_code] += 1
            except requests.RequestException:
                answers[0] += 1

    asker = threading.Thread(target=ask, name="load balancer")
    asker.start()
    try:
        yield
    finally:
        ended.set()
        asker.join()


def test_checkout_beside_five_hundred_slow_clients(guarded: Web, tell: Tell) -> None:
    product = a_product(stocked=1_000_000)
    health: Counter[int] = Counter()

    with asked_for_health(guarded, health):
        statuses, quiet, attacked = in_turns(
            lambda: check_out(guarded, product),
            lambda: slow_clients(guarded.port, SLOW_CLIENTS),
        )

    tell(f"checkout beside {SLOW_CLIENTS} slow clients: {ratios(quiet, attacked)}")
    tell(f"health checks meanwhile: {health.total()} asked, {health[200]} answered 200")
    assert statuses == {201}
    assert set(health) == {200}


def test_search_beside_twelve_that_guess_passwords(guarded: Web, tell: Tell) -> None:
    logins: Counter[int] = Counter()

    @contextmanager
    def guessers() -> Iterator[None]:
        ended = threading.Event()

        def guess(number: int) -> None:
            session = requests.Session()
            session.headers["X-Forwarded-For"] = f"203.0.113.{number}"
            session.get(guarded.url("/admin/login/"), timeout=20)  # it gives the CSRF token
            while not ended.is_set():
                answer = session.post(
                    guarded.url("/admin/login/"),
                    data={
                        "username": f"person-{number}",
                        "password": uuid4().hex,
                        "csrfmiddlewaretoken": session.cookies["csrftoken"],
                    },
                    timeout=20,
                )
                logins[answer.status_code] += 1

        threads = [threading.Thread(target=guess, args=[number]) for number in range(GUESSERS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    statuses, quiet, attacked = in_turns(lambda: search(guarded), guessers)

    tell(f"search beside {GUESSERS} guessers: {ratios(quiet, attacked)}")
    tell(f"what guessing gets: {dict(logins)}")
    assert statuses == {200}
    assert set(logins) == {200, 429}  # a few wrong passwords are told so, then none is looked at
    assert logins[200] <= GUESSERS * settings.AXES_FAILURE_LIMIT


def test_a_hoarder_beside_other_buyers(guarded: Web, tell: Tell) -> None:
    product = a_product(stocked=10_000)

    hoarded = Counter(
        check_out(guarded, product, pieces=9, address="203.0.113.77") for _ in range(58)
    )
    stock, reserved = numbers(product)
    others = Counter(check_out(guarded, product) for _ in range(20))

    tell(f"one hoarder: {dict(hoarded)}, {reserved} pieces of {stock} set aside")
    assert set(hoarded) == {201, 429}
    assert reserved <= 450
    assert others == {201: 20}
