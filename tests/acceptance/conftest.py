"""pytest-celery's cluster of real workers, each a local process, over the local SQS server.

A test takes `celery_setup` and shares one worker with the others; `@pytest.mark.workers(2)` asks
for two of its own.
"""

import email
import email.policy
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from celery import Celery
from django.conf import settings
from pytest_celery import CeleryBrokerCluster, CeleryWorkerCluster

from orders import catalogue
from orders.checkout import Item, Placed, place_order
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.routing import task_for
from skincare.local.deadline import wait_until
from skincare.operations.models import WorkerReport
from skincare.sqs import configure
from skincare.sqs.queues import create_queue_pair, depth
from tests.acceptance.processes import LocalBroker, LocalWorker, ProcessHandle, worker_command
from tests.acceptance.settings import SQS_POLICY
from tests.conftest import QueuePair
from tests.faults.proxy import FaultProxy

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True)
class Stage:
    """A queue, the workers that consume it, and what their processes need to run."""

    queues: QueuePair
    folder: Path
    environment: dict[str, str]
    app: Celery  # the sending side, as the API's relay is
    cluster: CeleryWorkerCluster


@pytest.fixture(scope="session")
def set_up(
    test_database_url: str, sqs_server: str, sqs_client: "SQSClient"
) -> Callable[..., AbstractContextManager[Stage]]:
    """Make a stage in a folder, with some workers, and what is special about their environment."""

    @contextmanager
    def made(folder: Path, workers: int, **special: str) -> Iterator[Stage]:
        name = f"acceptance-{uuid4().hex}"
        queues = QueuePair(*create_queue_pair(sqs_client, name=name, policy=SQS_POLICY))
        for part in ("emails", "faults"):
            (folder / part).mkdir()
        environment = {
            "DJANGO_SETTINGS_MODULE": "tests.acceptance.settings",
            "DATABASE_URL": test_database_url,
            "ORDER_EVENTS_QUEUE_URL": queues.url,
            "SQS_ENDPOINT_URL": sqs_server,
            "EMAIL_URL": f"filemail://{folder / 'emails'}",
            "FAULTS": str(folder / "faults"),
            "LOG_LEVEL": "INFO",  # which says that it is ready
            **special,
        }
        app = Celery(name, set_as_current=False)
        configure(
            app,
            policy=SQS_POLICY,
            queues={name: queues.url},
            region=settings.AWS_REGION,
            endpoint_url=sqs_server,
        )
        nodes = [start_worker(f"w{n}", app, environment, folder) for n in range(workers)]
        try:
            cluster = CeleryWorkerCluster(*nodes)
            assert cluster.ready()
            yield Stage(queues, folder, environment, app, cluster)
        finally:
            for node in nodes:
                node.teardown()
            forget_workers(test_database_url)
            for url in queues:
                sqs_client.delete_queue(QueueUrl=url)

    return made


def forget_workers(database_url: str) -> None:
    """Take away the reports of workers that ended without a word: other tests look at them all."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"DELETE FROM {WorkerReport._meta.db_table}")  # noqa: S608 our own name


def start_worker(name: str, app: Celery, environment: dict[str, str], folder: Path) -> LocalWorker:
    handle = ProcessHandle(
        worker_command(name),
        name=name,
        environment={**environment, "SQS_HEALTH_FILE": str(folder / f"{name}.json")},
        folder=folder,
        ready_prompt=f"{name} ready.",
    )
    return LocalWorker(handle, app)


class SharedStage:
    """The stage of all tests that do not break the worker itself, made for the first that asks."""

    def __init__(self, make: Callable[[], AbstractContextManager[Stage]]) -> None:
        self._make = make
        self._closing = ExitStack()
        self._stage: Stage | None = None

    def get(self) -> Stage:
        if self._stage is None:
            self._stage = self._closing.enter_context(self._make())
        return self._stage

    def end(self) -> None:
        self._stage = None
        self._closing.close()


@pytest.fixture(scope="package")
def shared_stage(
    set_up: Callable[..., AbstractContextManager[Stage]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SharedStage]:
    """It ends with the package: its worker tells of itself in the database of others' tests."""
    shared = SharedStage(lambda: set_up(tmp_path_factory.mktemp("shared"), 1))
    yield shared
    shared.end()


@pytest.fixture
def no_other_worker(shared_stage: SharedStage) -> None:
    """For tests that look at workers' reports: there are those of the test's own workers only."""
    shared_stage.end()


@pytest.fixture
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    marker = request.node.get_closest_marker("workers")
    if marker is not None:
        with request.getfixturevalue("set_up")(tmp_path, marker.args[0]) as own:
            yield own
        return
    shared: Stage = request.getfixturevalue("shared_stage").get()
    yield shared
    client = request.getfixturevalue("sqs_client")
    for url in shared.queues:
        client.purge_queue(QueueUrl=url)
    for email_file in (shared.folder / "emails").iterdir():
        email_file.unlink()


@pytest.fixture
def celery_broker_cluster() -> CeleryBrokerCluster:
    return CeleryBrokerCluster(LocalBroker(container=None))


@pytest.fixture
def celery_backend_cluster() -> None:
    """No results are kept."""


@pytest.fixture
def celery_setup_app(stage: Stage) -> Celery:
    return stage.app


@pytest.fixture
def celery_worker_cluster(stage: Stage) -> CeleryWorkerCluster:
    return stage.cluster


@dataclass(frozen=True)
class Shop:
    """What a test sees and does: orders, messages, emails, fault points."""

    app: Celery
    client: "SQSClient"
    queues: QueuePair
    folder: Path

    def paid_order(self, *, sku: str = "CLN-GEL-100", quantity: int = 1) -> "PaidOrder":
        """Check out with the sandbox, which pays at once; its events stay in the outbox."""
        key = os.urandom(8).hex()
        placed = place_order(
            items=[Item(sku=sku, quantity=quantity)],
            email="buyer@mail.example",
            payment_method="sandbox",
            idempotency_key=key,
        )
        event = OutboxEvent.objects.get(
            order_id=placed.order_id, event_type="payment.processed"
        ).payload
        return PaidOrder(placed, event)

    def deliver(self, event: dict[str, Any], times: int = 1) -> None:
        """Put the event's message on the queue."""
        with self.app.producer_or_acquire() as producer, producer.channel.batch() as batch:
            for _ in range(times):
                self.app.send_task(
                    task_for(event["event_type"]),
                    args=[event],
                    task_id=event["event_id"],
                    producer=producer,
                )
        assert batch.failures == {}

    def plan(self, event: dict[str, Any], point: str, *actions: str) -> None:
        """Make the worker fail at `point` of this event, once for each action."""
        for number, action in enumerate(actions):
            path = self.folder / "faults" / f"{event['event_id']}.{point}.{number}"
            path.write_text(action)

    def processed(self, event: dict[str, Any]) -> ProcessedEvent | None:
        return ProcessedEvent.objects.filter(event_id=event["event_id"]).first()

    def wait_for_status(
        self, event: dict[str, Any], status: str, *, seconds: float = 40
    ) -> ProcessedEvent:
        def reached() -> bool:
            row = self.processed(event)
            return row is not None and row.status == status

        wait_until(reached, seconds=seconds, what=f"the event to be {status}", every=0.05)
        row = self.processed(event)
        assert row is not None
        return row

    def wait_for_empty_queue(self, *, seconds: float = 40) -> None:
        wait_until(
            lambda: sum(depth(self.client, self.queues.url)) == 0,
            seconds=seconds,
            what="the queue to be empty",
            every=0.1,
        )

    def in_dlq(self) -> list[dict[str, Any]]:
        """Return the DLQ's messages."""
        found: list[dict[str, Any]] = []
        while messages := self.client.receive_message(
            QueueUrl=self.queues.dlq_url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=0,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        ).get("Messages"):
            found += messages  # type: ignore[arg-type]
        return found

    def different_emails(self) -> set[str]:
        """The Message-IDs. One whose process dies between the provider's yes and the commit, or is
        starved by a busy machine until its time is over, is sent again as the same.
        """
        return {email["Message-ID"] for email in self.emails()}

    def emails(self) -> list[EmailMessage]:
        """Return all emails that the workers sent."""
        messages = []
        for path in (self.folder / "emails").iterdir():
            for text in path.read_bytes().split(b"-" * 79):
                if text.strip():
                    parsed = email.message_from_bytes(text.lstrip(), policy=email.policy.default)
                    assert isinstance(parsed, EmailMessage)
                    messages.append(parsed)
        return messages


@dataclass(frozen=True)
class PaidOrder:
    placed: Placed
    event: dict[str, Any]


@pytest.fixture
def shop(transactional_db: None, stage: Stage, sqs_client: "SQSClient") -> Shop:
    catalogue.seed()
    return Shop(stage.app, sqs_client, stage.queues, stage.folder)


@pytest.fixture(scope="module")
def shared_proxy(sqs_server: str) -> Iterator[FaultProxy]:
    with FaultProxy(sqs_server) as running:
        yield running


@pytest.fixture
def proxy(shared_proxy: FaultProxy) -> Iterator[FaultProxy]:
    """The API's way to SQS; the workers have their own."""
    yield shared_proxy
    shared_proxy.clear()
