"""What goes wrong: each kind of trouble is a thread that strikes at random until it is over."""

from __future__ import annotations

import itertools
import json
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, Self

import psutil
import psycopg

from tests.chaos.shop import Shop
from tests.faults.faults import (
    CutAnswer,
    FailedEntries,
    Fault,
    Garbage,
    Hang,
    LostAnswer,
    Reset,
    Slow,
    Status,
)
from tests.faults.messages import celery_message
from tests.faults.poison import Shape, poison

FAULTS: list[Fault] = [
    Status(500),
    Status(503),
    Status(429),
    Status(403, "ExpiredToken"),
    Garbage(),
    Reset(),
    LostAnswer(),
    CutAnswer(),
    Hang(),
    Slow(seconds=1.5),
]
POLL, DELETE, RELEASE, SEND = (
    "ReceiveMessage",
    "DeleteMessageBatch",
    "ChangeMessageVisibilityBatch",
    "SendMessageBatch",
)
NETWORK_TROUBLES: list[tuple[str, Fault] | None] = [
    None,  # connections are refused
    *((action, fault) for action in (POLL, DELETE, RELEASE, SEND) for fault in FAULTS),
    *((action, FailedEntries()) for action in (DELETE, RELEASE, SEND)),
]
PROCESS_TROUBLES = [
    "pool process killed",
    "pool process frozen",
    "purge refused",
    "worker killed",
    "web process killed",
    "worker restarted",
    "pool process killed",
]
DATABASE_TROUBLES = [
    "PostgreSQL away for longer than a visibility timeout",
    "PostgreSQL failed over to a reader",
    "PostgreSQL restarted",
    "backends terminated",
    "PostgreSQL crashed",
    "backends terminated",
]
AWAY_SECONDS = 55.0
"""Five minutes, as much shorter as the visibility timeout is: 22 seconds for 120."""
READER_SECONDS = 5.0
EMAIL_TROUBLES = ["email provider throttles", "email provider away"]
PAYMENT_TASK = "payments.payment_processed"
STRIKES, MIN_EVENTS_BETWEEN = 25, 30
"""How often processes are killed in a run, and how many events have to be done in between."""
FAILING_SHARE = 0.35
"""Of the calls of one action, while a fault is on."""


class Havoc:
    """All troubles at once, from `__enter__` to `__exit__`; `struck` counts them by name."""

    def __init__(
        self, shop: Shop, *, seed: int, events: int, poison_messages: int, duplicates: int
    ) -> None:
        self._shop = shop
        self._rest = max(MIN_EVENTS_BETWEEN, events / STRIKES)
        self._seed = seed
        self._over = threading.Event()
        self._stack = ExitStack()
        self.struck: Counter[str] = Counter()
        self.failures: list[BaseException] = []
        self.poison_ids: dict[str, str] = {}
        self._shapes = _poison(poison_messages, random.Random(seed))  # noqa: S311
        self._duplicates = duplicates
        # Each kind comes up once before any comes up again.
        network = random.Random(seed).sample(NETWORK_TROUBLES, len(NETWORK_TROUBLES))  # noqa: S311
        self._network_troubles = itertools.cycle(network)
        self._process_troubles = itertools.cycle(PROCESS_TROUBLES)
        self._database_troubles = itertools.cycle(DATABASE_TROUBLES)
        self._email_troubles = itertools.cycle(EMAIL_TROUBLES)

    def __enter__(self) -> Self:
        shop, processes, database = self._shop, self._after(self._rest), self._after(3 * self._rest)
        self._start(
            self._break_processes,
            every=(1.0, 2.0),
            # To kill one that has not begun proves nothing.
            when=lambda: shop.workers_ready() and processes(),
        )
        self._start(self._break_database, every=(2.0, 4.0), when=database)
        self._start(self._break_network, every=(0.3, 1.5))
        self._start(self._break_email, every=(8.0, 16.0))
        self._start(self._duplicate, every=(0.05, 0.3))
        self._start(self._poison, every=(0.1, 0.6))
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the troubles, puts in what poison and duplicates are missing, repairs SQS."""
        self._over.set()
        self._stack.close()
        self._shop.proxy.clear()
        last = random.Random(self._seed)  # noqa: S311
        while self._shapes:
            self._poison(last)
        while self.struck["duplicate injected"] < self._duplicates:
            self._duplicate(last)

    def _start(
        self,
        strike: Callable[[random.Random], None],
        *,
        every: tuple[float, float],
        when: Callable[[], bool] = lambda: True,
    ) -> None:
        """Strike `every` some seconds, where `when()` says so."""
        chance = random.Random(f"{self._seed}-{strike.__name__}")  # noqa: S311

        def run() -> None:
            try:
                while not self._over.wait(chance.uniform(*every)):
                    if when():
                        strike(chance)
            except BaseException as error:
                self.failures.append(error)
                raise

        thread = threading.Thread(target=run, name=f"havoc{strike.__name__}")
        thread.start()
        self._stack.callback(thread.join)

    def _after(self, events: float) -> Callable[[], bool]:
        """True when so many events were done since it was last true: a slow machine is not to be
        hit more often for the same work, or good messages would use up their receives."""
        last = 0

        def is_due() -> bool:
            nonlocal last
            done = self._shop.events_done()
            if done < last + events:
                return False
            last = done
            return True

        return is_due

    def _break_processes(self, chance: random.Random) -> None:
        kind = next(self._process_troubles)
        worker = chance.choice(self._shop.workers)
        if kind == "worker killed":
            worker.restart(signal.SIGKILL)
        elif kind == "worker restarted":
            worker.restart(signal.SIGTERM)
        elif kind == "purge refused":
            self._shop.purge()
        elif kind == "pool process frozen":
            with suppress(psutil.NoSuchProcess, IndexError):
                chance.choice(self._shop.children(worker)).suspend()
        else:
            parent = self._shop.web if kind == "web process killed" else worker
            with suppress(psutil.NoSuchProcess, IndexError):
                chance.choice(self._shop.children(parent)).send_signal(signal.SIGKILL)
        self.struck[kind] += 1

    def _break_network(self, chance: random.Random) -> None:
        proxy = self._shop.proxy
        trouble = next(self._network_troubles)
        if trouble is None:
            proxy.refuse()
            self._over.wait(chance.uniform(0.2, 1.0))
            proxy.listen()
            self.struck["SQS refused connections"] += 1
            return
        action, fault = trouble
        with proxy.inject(fault, action=action, probability=FAILING_SHARE) as injection:
            self._over.wait(chance.uniform(0.5, 2.0))
        self.struck[f"SQS calls: {type(fault).__name__}"] += injection.hits

    def _break_database(self, chance: random.Random) -> None:
        kind = next(self._database_troubles)
        postgres = self._shop.postgres
        if kind == "backends terminated":
            postgres.terminate_backends()
        elif kind == "PostgreSQL failed over to a reader":
            with postgres.failed_over():
                self._over.wait(READER_SECONDS)
        elif kind == "PostgreSQL away for longer than a visibility timeout":
            with postgres.away():
                time.sleep(AWAY_SECONDS)  # whatever ends meanwhile
        else:
            postgres.restart(crash=kind == "PostgreSQL crashed")
        self.struck[kind] += 1

    def _break_email(self, chance: random.Random) -> None:
        kind = next(self._email_troubles)
        mail = self._shop.mail
        mail.every = 0.5 if kind == "email provider throttles" else 3600.0
        self._over.wait(chance.uniform(4.0, 8.0))
        mail.every, mail.next_at = 0.0, 0.0
        self.struck[kind] += 1

    def _duplicate(self, chance: random.Random) -> None:
        """Sends an event a second time, as another producer would: bare, or as a Celery message."""
        if self.struck["duplicate injected"] >= self._duplicates:
            return
        event = self._some_event(chance)
        if event is None:
            return
        event_type, payload = event
        task = "orders.order_confirmed" if event_type == "order.confirmed" else PAYMENT_TASK
        bare = json.dumps(payload)
        headers = {"id": payload["event_id"]}
        body = bare if chance.random() < 0.5 else celery_message(task, [payload], headers=headers)
        self._shop.client.send_message(QueueUrl=self._shop.queue_url, MessageBody=body)
        self.struck["duplicate injected"] += 1

    def _some_event(self, chance: random.Random) -> tuple[str, dict[str, Any]] | None:
        try:
            with self._shop.connect() as connection:
                found = connection.execute(
                    "SELECT event_type, payload FROM events_outboxevent ORDER BY id DESC LIMIT 50"
                ).fetchall()
        except psycopg.OperationalError:
            return None
        return chance.choice(found) if found else None  # type: ignore[return-value]

    def _poison(self, chance: random.Random) -> None:
        if not self._shapes:
            return
        shape = self._shapes.pop()
        sent = self._shop.client.send_message(QueueUrl=self._shop.queue_url, MessageBody=shape.body)
        self.poison_ids[sent["MessageId"]] = shape.name
        self.struck["poison put in"] += 1


def _poison(count: int, chance: random.Random) -> list[Shape]:
    """Some of the shapes, and events that only the task can refuse."""
    event = {
        "event_id": "chaos-unknown-order",
        "event_type": "payment.processed",
        "order_id": "00000000-0000-4000-8000-000000000000",
        "payment_id": "00000000-0000-4000-8000-000000000001",
        "user_id": "guest",
        "amount_rupiah": 1000,
        "created_at": "2026-01-01T00:00:00+00:00",
    }
    refused = [
        Shape("event of an unknown order", json.dumps(event)),
        Shape("event with a fraction of a rupiah", json.dumps(event | {"amount_rupiah": 0.5})),
    ]
    shapes = poison(PAYMENT_TASK)
    return refused + chance.sample(shapes, min(count - len(refused), len(shapes)))
