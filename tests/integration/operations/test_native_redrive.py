"""`manage.py dlq redrive --native` against an SQS that has move tasks (make native)."""

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import call_command
from django.core.management.base import CommandError

from skincare.sqs.client import make_client
from skincare.sqs.queues import create_queue_pair
from tests.conftest import QueuePair
from tests.faults.poison import poison
from tests.integration.ecs.emulators import localemu
from tests.integration.events.event_documents import new_event
from tests.integration.operations.conftest import Letters, as_bare

pytestmark = [pytest.mark.native, pytest.mark.django_db, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def endpoint_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with localemu(tmp_path_factory.mktemp("localemu")) as account:
        yield account.url


@pytest.fixture
def letters(endpoint_url: str, settings: Any) -> Letters:
    """The dead-letter queue at localemu; the settings point there."""
    client = make_client(
        region=settings.AWS_REGION, endpoint_url=endpoint_url, policy=settings.SQS_POLICY
    )
    pair = QueuePair(*create_queue_pair(client, name="native", policy=settings.SQS_POLICY))
    for url in pair:
        client.purge_queue(QueueUrl=url)
    settings.ORDER_EVENTS_QUEUE_URL = pair.url
    settings.SQS_ENDPOINT_URL = endpoint_url
    return Letters(client, pair)


def redrive_natively(*args: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("dlq", "redrive", "--native", *args, stdout=out, stderr=StringIO())
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


def test_the_emulator_listens_on_this_machine_only(endpoint_url: str) -> None:
    port = urlsplit(endpoint_url).port
    listening = [
        connection.laddr.ip
        for connection in psutil.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
    ]
    assert listening == ["127.0.0.1"]


def test_all_messages_go_back_as_they_are_poison_too(letters: Letters) -> None:
    bodies = [as_bare(new_event()), *(shape.body for shape in poison("orders.order_confirmed")[:8])]
    letters.put(bodies)

    code, printed = redrive_natively("--yes", "--json")

    assert code == 0, printed
    assert json.loads(printed)["status"] == "COMPLETED"
    assert letters.visible() == 0
    moved = []
    while found := letters.client.receive_message(
        QueueUrl=letters.pair.url, MaxNumberOfMessages=10, WaitTimeSeconds=1
    ).get("Messages"):
        moved += [message["Body"] for message in found]
    assert sorted(moved) == sorted(bodies)
    [entry] = LogEntry.objects.all()
    assert entry.change_message.startswith("moved back natively: ")


def test_an_empty_queue_is_said(letters: Letters) -> None:
    assert redrive_natively("--yes") == (1, "The dead-letter queue is empty.")


def test_a_dry_run_moves_nothing(letters: Letters) -> None:
    letters.put(["poison"])

    code, printed = redrive_natively("--dry-run")

    assert (code, printed.split(" go ")[0]) == (0, "About 1 messages")
    assert letters.visible() == 1
