"""Who is measured: how each is started, and how events are sent to it."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import boto3
from celery import Celery

from skincare.events.routing import PAYMENT_TASK
from skincare.local.sqs import REGION
from tests.bench.work import Document
from tests.bench.workers import stock, transport

PROCESSES = 5
CELERY = str(Path(sys.executable).parent / "celery")


class Publisher(Protocol):
    """How the contestant's producer sends events."""

    def send(self, documents: Sequence[Document]) -> None: ...


@dataclass(frozen=True)
class Contestant:
    """`backlog` is how many events it is given at once: some seconds of work. `shop_backlog` is
    the same for the shop's handler, which does more with each; 0 leaves it out."""

    name: str
    backlog: int
    shop_backlog: int
    command: Callable[[str], list[str]]
    publisher: Callable[[str, str, str], Publisher]
    """Takes the handler, the queue's URL and the endpoint's."""
    environment: dict[str, str]
    when_quiet: bool = True
    """Whether it is measured with little to do, too."""


class StockPublisher:
    """`send_task`, one call of SQS for each event."""

    task = stock.TASK

    def __init__(self, app: Celery) -> None:
        self._app = app

    def send(self, documents: Sequence[Document]) -> None:
        for document in documents:
            self._app.send_task(self.task, args=[document], task_id=document["event_id"])


class BatchPublisher:
    """`channel.batch()`, as the outbox relay does it."""

    def __init__(self, app: Celery, task: str) -> None:
        self._app = app
        self._task = task

    def send(self, documents: Sequence[Document]) -> None:
        app = self._app
        with app.producer_or_acquire() as producer, producer.channel.batch() as batch:
            for document in documents:
                app.send_task(
                    self._task, args=[document], task_id=document["event_id"], producer=producer
                )
        if batch.failures:
            raise RuntimeError(f"not sent: {batch.failures}")


class LoopPublisher:
    """Bare events, ten in a call."""

    def __init__(self, queue_url: str, endpoint_url: str) -> None:
        self._queue_url = queue_url
        self._client = boto3.session.Session().client(
            "sqs", region_name=REGION, endpoint_url=endpoint_url
        )

    def send(self, documents: Sequence[Document]) -> None:
        for first in range(0, len(documents), 10):
            self._client.send_message_batch(
                QueueUrl=self._queue_url,
                Entries=[
                    {"Id": str(number), "MessageBody": json.dumps(document)}
                    for number, document in enumerate(documents[first : first + 10])
                ],
            )


def celery_worker(module: str) -> list[str]:
    return [CELERY, "-A", f"tests.bench.workers.{module}", "worker", f"--concurrency={PROCESSES}"]


def _stock(name: str, *, options: str, backlog: int, shop_backlog: int) -> Contestant:
    return Contestant(
        name,
        backlog,
        shop_backlog,
        command=lambda handler: celery_worker("stock"),
        publisher=lambda handler, queue_url, endpoint_url: StockPublisher(
            stock.make_app(queue_url=queue_url, endpoint_url=endpoint_url, options=options)
        ),
        environment={"BENCH_OPTIONS": options},
        when_quiet=options != "careful",
    )


def _loop(name: str, *, in_batches: bool, backlog: int, shop_backlog: int) -> Contestant:
    return Contestant(
        name,
        backlog,
        shop_backlog,
        command=lambda handler: [sys.executable, "-m", "tests.bench.workers.loop"],
        publisher=lambda handler, queue_url, endpoint_url: LoopPublisher(queue_url, endpoint_url),
        environment={"BENCH_BATCH": str(int(in_batches))},
        when_quiet=not in_batches,
    )


SHOP_BACKLOG = 200
DEFAULTS = _stock("stock Celery, defaults", options="", backlog=120, shop_backlog=60)
CAREFUL = _stock(
    "stock Celery, late ack, prefetch 1", options="careful", backlog=40, shop_backlog=0
)
TUNED = _stock("stock Celery, tuned", options="tuned", backlog=500, shop_backlog=SHOP_BACKLOG)
LOOP = _loop("boto3 loop, 5 threads", in_batches=False, backlog=2000, shop_backlog=SHOP_BACKLOG)
BATCH_LOOP = _loop("boto3 loop, deleting by ten", in_batches=True, backlog=3000, shop_backlog=0)
OURS = Contestant(
    "skincare.sqs",
    backlog=3000,
    shop_backlog=SHOP_BACKLOG,
    command=lambda handler: celery_worker("transport" if handler == "no-op" else "shop"),
    publisher=lambda handler, queue_url, endpoint_url: BatchPublisher(
        transport.make_app(queue_url=queue_url, endpoint_url=endpoint_url),
        transport.TASK if handler == "no-op" else PAYMENT_TASK,
    ),
    environment={},
)
ALL = (DEFAULTS, CAREFUL, TUNED, LOOP, BATCH_LOOP, OURS)
