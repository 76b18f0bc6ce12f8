"""What the worker needs to run: two URLs, the SQS endpoint and any credentials."""

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from orders import catalogue
from orders.checkout import Item, place_order
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.local.deadline import wait_until
from skincare.local.supervised import Supervised
from tests.acceptance.processes import worker_command
from tests.conftest import QueuePair

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@pytest.mark.django_db(transaction=True)
def test_a_worker_runs_against_whoevers_servers(
    test_database_url: str, queue_pair: QueuePair, sqs_server: str, sqs_client: "SQSClient"
) -> None:
    catalogue.seed()
    placed = place_order(
        items=[Item(sku="CLN-GEL-100", quantity=1)],
        email="buyer@mail.example",
        payment_method="midtrans",
        idempotency_key="k",
    )
    event = OutboxEvent.objects.get(order_id=placed.order_id)
    environment = {
        "PATH": os.environ["PATH"],
        "ENV_FILE": "",
        "DATABASE_URL": test_database_url,
        "ORDER_EVENTS_QUEUE_URL": queue_pair.url,
        "SQS_ENDPOINT_URL": sqs_server,
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
    }

    command = worker_command("w")
    with Supervised(command, name="worker", env=environment, stop_signal=signal.SIGQUIT) as worker:
        sqs_client.send_message(QueueUrl=queue_pair.url, MessageBody=json.dumps(event.payload))

        def done() -> bool:
            assert worker.running, worker.log_tail()
            return ProcessedEvent.objects.filter(event_id=event.event_id, status="done").exists()

        wait_until(done, seconds=90, what="the event to be done", every=0.1)
