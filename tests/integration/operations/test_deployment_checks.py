"""`manage.py preflight`: one line each, OK or the fix."""

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.conftest import QueuePair
from tests.faults.faults import Denied, Status
from tests.faults.proxy import FaultProxy

pytestmark = pytest.mark.django_db


@pytest.fixture
def proxy(sqs_server: str, queue_pair: QueuePair, settings: Any) -> Iterator[FaultProxy]:
    """Between us and the SQS server; the settings point there."""
    with FaultProxy(sqs_server) as proxy:
        settings.ORDER_EVENTS_QUEUE_URL = queue_pair.url
        settings.SQS_ENDPOINT_URL = proxy.url
        yield proxy


def preflight(role: str) -> tuple[int, dict[str, str]]:
    """Return the exit code, and what was found of each check."""
    out = StringIO()
    code = 0
    try:
        call_command("preflight", role, stdout=out, stderr=StringIO())
    except CommandError as error:
        code = error.returncode
    return code, dict(line.split(": ", 1) for line in out.getvalue().splitlines())


def test_all_is_well_for_an_api(proxy: FaultProxy, queue_pair: QueuePair) -> None:
    name, dlq = (url.rsplit("/", 1)[1] for url in queue_pair)
    assert preflight("api") == (
        0,
        {
            "settings": "OK",
            "database": "OK",
            "migrations": "OK",
            f"queue {name}": "OK",
            f"queue {name}, sqs:SendMessage": "OK",
            f"dead-letter queue {dlq}, sqs:ReceiveMessage": "OK",
            f"dead-letter queue {dlq}, sqs:DeleteMessage": "OK",
            f"dead-letter queue {dlq}, sqs:ChangeMessageVisibility": "OK",
        },
    )


def test_all_is_well_for_a_worker(proxy: FaultProxy, queue_pair: QueuePair) -> None:
    name = queue_pair.url.rsplit("/", 1)[1]
    code, found = preflight("worker")
    assert code == 0
    assert list(found)[4:] == [
        f"queue {name}, sqs:ReceiveMessage",
        f"queue {name}, sqs:DeleteMessage",
        f"queue {name}, sqs:ChangeMessageVisibility",
        "health file",
    ]


def test_no_message_is_touched(proxy: FaultProxy, queue_pair: QueuePair, sqs_client: Any) -> None:
    for url in queue_pair:
        sqs_client.send_message(QueueUrl=url, MessageBody="waits")

    preflight("api")
    preflight("worker")

    for url in queue_pair:
        [message] = sqs_client.receive_message(
            QueueUrl=url, MessageSystemAttributeNames=["ApproximateReceiveCount"]
        )["Messages"]
        assert message["Attributes"]["ApproximateReceiveCount"] == "1"


@pytest.mark.parametrize(
    ("role", "action", "call"),
    [
        ("api", "SendMessage", "SendMessageBatch"),
        ("worker", "ReceiveMessage", "ReceiveMessage"),
        ("worker", "DeleteMessage", "DeleteMessage"),
        ("worker", "ChangeMessageVisibility", "ChangeMessageVisibility"),
    ],
)
def test_a_denied_action_is_named(
    role: str, action: str, call: str, proxy: FaultProxy, queue_pair: QueuePair
) -> None:
    name = queue_pair.url.rsplit("/", 1)[1]
    with proxy.inject(Denied(), action=call):
        code, found = preflight(role)
    assert code == 1
    assert found[f"queue {name}, sqs:{action}"] == (
        "denied (AccessDenied): allow it in the task role's policy"
    )
    assert sum(problem != "OK" for problem in found.values()) == 1


def test_a_queue_that_contradicts_the_settings(
    proxy: FaultProxy, queue_pair: QueuePair, sqs_client: Any
) -> None:
    sqs_client.set_queue_attributes(QueueUrl=queue_pair.url, Attributes={"VisibilityTimeout": "30"})
    code, found = preflight("worker")
    assert code == 1
    assert "set the attribute to 120" in found[f"queue {queue_pair.url.rsplit('/', 1)[1]}"]


def test_sqs_that_does_not_answer(proxy: FaultProxy, queue_pair: QueuePair) -> None:
    with proxy.inject(Status(503), action="GetQueueAttributes"):
        code, found = preflight("api")
    assert code == 1
    assert found["database"] == "OK"
    problem = found[f"queue {queue_pair.url.rsplit('/', 1)[1]}"]
    assert problem.startswith("its attributes cannot be read (ServiceUnavailable): see ")


def test_a_migration_that_is_missing(proxy: FaultProxy) -> None:
    [(_, newest)] = MigrationExecutor(connection).loader.graph.leaf_nodes("payments")
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE app = 'payments' AND name = %s", [newest]
        )
    code, found = preflight("api")
    assert code == 1
    assert found["migrations"] == f"not applied: payments {newest}. Run manage.py migrate."


def test_wrong_settings(proxy: FaultProxy, settings: Any) -> None:
    settings.CLAIM_LEASE_SECONDS = 10
    code, found = preflight("worker")
    assert code == 1
    assert "Raise CLAIM_LEASE_SECONDS." in found["settings events.E001"]


def test_a_health_file_that_cannot_be_written(proxy: FaultProxy, settings: Any) -> None:
    settings.SQS_POLICY = settings.SQS_POLICY.__class__(health_file="/nowhere/health.json")
    code, found = preflight("worker")
    assert code == 1
    assert found["health file"].startswith("/nowhere cannot be written: ")
