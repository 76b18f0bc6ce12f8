"""Who is measured: how each is started, and how events are sent to it."""

import base64
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

import boto3
from celery import Celery

from skincare.events.routing import PAYMENT_TASK
from skincare.local.sqs import REGION
from tests.bench import npm
from tests.bench.subject import HERE, ROOT, Subject
from tests.bench.work import Document
from tests.bench.workers import stock, transport

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

PROCESSES = 5
PEERS = Path(sys.prefix) / "bench-peers" / "bin"
"""Dramatiq and taskiq pin what we pin otherwise, so they have an environment of their own."""


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
    when_quiet: bool = False
    """Whether it is measured with little to do, too."""
    root: Path = ROOT
    """Where its command runs."""
    is_there: Callable[[], bool] = lambda: True
    """Installs what it needs; False where that cannot be had."""


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
        self._client = _client(endpoint_url)

    def send(self, documents: Sequence[Document]) -> None:
        for first in range(0, len(documents), 10):
            self._client.send_message_batch(
                QueueUrl=self._queue_url,
                Entries=[
                    {"Id": str(number), "MessageBody": json.dumps(document)}
                    for number, document in enumerate(documents[first : first + 10])
                ],
            )


class SinglePublisher:
    """One call for each event, as the peer's own producer does; `wrap` makes the message's body."""

    def __init__(self, queue_url: str, endpoint_url: str, wrap: Callable[[Document], str]) -> None:
        self._queue_url = queue_url
        self._client = _client(endpoint_url)
        self._wrap = wrap

    def send(self, documents: Sequence[Document]) -> None:
        for document in documents:
            self._client.send_message(QueueUrl=self._queue_url, MessageBody=self._wrap(document))


def _client(endpoint_url: str) -> "SQSClient":
    return boto3.session.Session().client("sqs", region_name=REGION, endpoint_url=endpoint_url)


def celery_worker(module: str, subject: Subject = HERE) -> list[str]:
    return [
        *(subject.celery, "-A", f"tests.bench.workers.{module}"),
        *("worker", f"--concurrency={PROCESSES}"),
    ]


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


def _sqs_consumer(name: str, *, consumers: int) -> Contestant:
    return Contestant(
        name,
        backlog=3000,
        shop_backlog=0,
        command=lambda handler: [
            *(str(npm.NODE), str(npm.SQS_CONSUMER.folder / npm.SQS_CONSUMER.program)),
            str(consumers),
        ],
        publisher=lambda handler, queue_url, endpoint_url: LoopPublisher(queue_url, endpoint_url),
        environment={},
        is_there=npm.SQS_CONSUMER.install,
    )


def _dramatiq() -> Contestant:
    def publisher(handler: str, queue_url: str, endpoint_url: str) -> Publisher:
        def wrap(document: Document) -> str:
            message = {
                "queue_name": queue_url.rsplit("/", 1)[-1],
                "actor_name": "handle",
                "args": [document],
                "kwargs": {},
                "options": {},
                "message_id": uuid4().hex,
                "message_timestamp": int(time.time() * 1000),
            }
            return base64.b64encode(json.dumps(message).encode()).decode()

        return SinglePublisher(queue_url, endpoint_url, wrap)

    return Contestant(
        "Dramatiq + dramatiq-sqs",
        backlog=2000,
        shop_backlog=0,
        command=lambda handler: [
            *(str(PEERS / "dramatiq"), "tests.bench.workers.dramatiq_worker"),
            f"--processes={PROCESSES}",
        ],
        publisher=publisher,
        environment={},
        is_there=(PEERS / "dramatiq").exists,
    )


def _taskiq() -> Contestant:
    def publisher(handler: str, queue_url: str, endpoint_url: str) -> Publisher:
        def wrap(document: Document) -> str:
            return json.dumps(
                {
                    "task_id": uuid4().hex,
                    "task_name": "bench.handle",
                    "labels": {},
                    "labels_types": {},
                    "args": [document],
                    "kwargs": {},
                }
            )

        return SinglePublisher(queue_url, endpoint_url, wrap)

    return Contestant(
        "taskiq + taskiq-aio-sqs",
        backlog=2000,
        shop_backlog=0,
        command=lambda handler: [
            *(str(PEERS / "taskiq"), "worker", "tests.bench.workers.taskiq_worker:broker"),
            f"--workers={PROCESSES}",
        ],
        publisher=publisher,
        environment={},
        is_there=(PEERS / "taskiq").exists,
    )


def ours(subject: Subject) -> Contestant:
    """The transport of this checkout, or of another one."""
    return Contestant(
        "skincare.sqs" if subject is HERE else f"skincare.sqs of {subject.name}",
        backlog=6000,
        shop_backlog=SHOP_BACKLOG,
        command=lambda handler: celery_worker(
            "transport" if handler == "no-op" else "shop", subject
        ),
        publisher=lambda handler, queue_url, endpoint_url: BatchPublisher(
            transport.make_app(queue_url=queue_url, endpoint_url=endpoint_url),
            transport.TASK if handler == "no-op" else PAYMENT_TASK,
        ),
        environment={},
        when_quiet=True,
        root=subject.root,
    )


SHOP_BACKLOG = 1000
DEFAULTS = _stock("stock Celery, defaults", options="", backlog=120, shop_backlog=60)
CAREFUL = _stock(
    "stock Celery, late ack, prefetch 1", options="careful", backlog=40, shop_backlog=0
)
TUNED = _stock("stock Celery, tuned", options="tuned", backlog=500, shop_backlog=300)
LOOP = _loop("boto3 loop, 5 threads", in_batches=False, backlog=2000, shop_backlog=300)
BATCH_LOOP = _loop("boto3 loop, deleting by ten", in_batches=True, backlog=6000, shop_backlog=0)
CONSUMER = _sqs_consumer("npm sqs-consumer", consumers=1)
CONSUMER_BY_FIVE = _sqs_consumer("npm sqs-consumer, five", consumers=5)
DRAMATIQ = _dramatiq()
TASKIQ = _taskiq()
OTHERS = (
    *(DEFAULTS, CAREFUL, TUNED, LOOP, BATCH_LOOP),
    *(CONSUMER, CONSUMER_BY_FIVE, DRAMATIQ, TASKIQ),
)
OURS = ours(HERE)
ALL = (*OTHERS, OURS)
AGAINST = (BATCH_LOOP, CONSUMER_BY_FIVE)
"""Those whose pace is a goal: they are measured along when two checkouts are compared."""
