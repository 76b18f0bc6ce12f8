"""pytest-celery's cluster of real workers, each a local process, over the local SQS server.

A test takes `celery_setup`; `@pytest.mark.workers(2)` asks for two workers.
"""

import email
import email.policy
import os
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from celery import Celery
from django.conf import settings
from pytest_celery import CeleryBrokerCluster, CeleryWorkerCluster

from orders import catalogue
from orders.checkout import Item, Placed, place_order
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.routing import task_for
from skincare.local.deadline import wait_until
from skincare.sqs import configure
from skincare.sqs.queues import create_queue_pair, depth
from tests.acceptance.processes import LocalBroker, LocalWorker, ProcessHandle, worker_command
from tests.acceptance.settings import SQS_POLICY
from tests.conftest import QueuePair

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@pytest.fixture
def queue_pair(sqs_client: "SQSClient", request: pytest.FixtureRequest) -> Iterator[QueuePair]:
    """A new queue and its DLQ with the short numbers of these tests."""
    name = f"acceptance-{abs(hash(request.node.nodeid)):x}"
    pair = QueuePair(*create_queue_pair(sqs_client, name=name, policy=SQS_POLICY))
    yield pair
    for url in pair:
        sqs_client.delete_queue(QueueUrl=url)


@pytest.fixture
def sqs_url(sqs_server: str) -> str:
    """The SQS endpoint of the workers; a test that breaks SQS puts a proxy in between."""
    return sqs_server


@pytest.fixture
def environment(
    test_database_url: str, queue_pair: QueuePair, sqs_url: str, tmp_path: Path
) -> dict[str, str]:
    """What a process of the project needs to run on this test's database, queue and folders."""
    for folder in ("emails", "faults"):
        (tmp_path / folder).mkdir()
    return {
        "DJANGO_SETTINGS_MODULE": "tests.acceptance.settings",
        "DATABASE_URL": test_database_url,
        "ORDER_EVENTS_QUEUE_URL": queue_pair.url,
        "SQS_ENDPOINT_URL": sqs_url,
        "EMAIL_URL": f"filemail://{tmp_path / 'emails'}",
        "FAULTS": str(tmp_path / "faults"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@pytest.fixture
def celery_broker_cluster(sqs_server: str) -> CeleryBrokerCluster:
    return CeleryBrokerCluster(LocalBroker(container=None))


@pytest.fixture
def celery_backend_cluster() -> None:
    """No results are kept."""


@pytest.fixture
def celery_setup_app(sqs_server: str, queue_pair: QueuePair) -> Celery:
    """The sending side: what the API's relay uses."""
    app = Celery("acceptance", set_as_current=False)
    configure(
        app,
        policy=SQS_POLICY,
        queues={queue_pair.url.rsplit("/", 1)[-1]: queue_pair.url},
        region=settings.AWS_REGION,
        endpoint_url=sqs_server,
    )
    return app


@pytest.fixture
def celery_worker_cluster(
    environment: dict[str, str],
    celery_setup_app: Celery,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[CeleryWorkerCluster]:
    marker = request.node.get_closest_marker("workers")
    workers = [
        LocalWorker(
            ProcessHandle(
                worker_command(name),
                name=name,
                environment={**environment, "SQS_HEALTH_FILE": str(tmp_path / f"{name}.json")},
                folder=tmp_path,
                ready_prompt=f"{name} ready.",
            ),
            celery_setup_app,
        )
        for name in (f"w{n}" for n in range(marker.args[0] if marker else 1))
    ]
    cluster = CeleryWorkerCluster(*workers)
    try:
        assert cluster.ready()
        yield cluster
    finally:
        for worker in workers:
            worker.teardown()


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
def shop(
    transactional_db: None,
    celery_setup_app: Celery,
    sqs_client: "SQSClient",
    queue_pair: QueuePair,
    environment: dict[str, str],
    tmp_path: Path,
) -> Shop:
    catalogue.seed()
    return Shop(celery_setup_app, sqs_client, queue_pair, tmp_path)
