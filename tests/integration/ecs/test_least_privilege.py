"""API and worker do all of the demo with no more than their roles at AWS and in the database."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import psycopg
import pytest
from botocore.exceptions import ClientError

from ecs.template import deployed
from skincare.local.deadline import wait_until
from skincare.local.demo import Demonstration
from skincare.local.sqs import REGION
from skincare.local.stack import Stack
from skincare.local.supervised import Supervised
from skincare.operations.deployment_checks import _ON_DLQ, _ON_QUEUE
from skincare.operations.management.commands import services_role
from tests.faults.faults import Denied
from tests.faults.proxy import FaultProxy

pytestmark = pytest.mark.timeout(600)

QUEUE, DEAD_LETTERS = "skincare-order-events", "skincare-order-events-dlq"
SERVICES_PASSWORD = "a-password-of-the-services"
ROLES = {"web": "ApiTaskRole", "worker": "WorkerTaskRole"}


def allowed(role: str) -> set[tuple[str, str]]:
    """Return the (action, queue) pairs that the template's role allows."""
    names = {"queues.OrderEvents.Arn": QUEUE, "queues.DeadLetters.Arn": DEAD_LETTERS}
    return {
        (action.removeprefix("sqs:"), names[statement["Resource"]])
        for policy in deployed().resource("roles", role)["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        for action in statement["Action"]
    }


def calls_of_sqs() -> list[str]:
    operations: Sequence[str] = boto3.client(
        "sqs", region_name=REGION
    ).meta.service_model.operation_names
    return list(operations)


@contextmanager
def confined(upstream: str, role: str) -> Iterator[FaultProxy]:
    """A way to SQS on which everything that the role does not allow is denied."""
    may = allowed(role)
    with FaultProxy(upstream) as proxy:
        for call in calls_of_sqs():
            # https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsqs.html
            # A batch needs the permission of the single call.
            action = call.removesuffix("Batch")
            granted = [queue for queue in (QUEUE, DEAD_LETTERS) if (action, queue) in may]
            if granted:
                for queue in {QUEUE, DEAD_LETTERS} - set(granted):
                    proxy.inject(Denied(), action=call, queue=queue)
            else:
                proxy.inject(Denied(), action=call)
        yield proxy


class ConfinedStack(Stack):
    """The whole shop, in which each process has its own way to SQS, and none owns the database."""

    def __init__(self, folder: Path, closing: ExitStack) -> None:
        super().__init__(folder)
        self.ways: dict[str, FaultProxy] = {}
        self._closing = closing

    def _own_environment(self, endpoint: str) -> dict[str, str]:
        # So the migration makes the role that the services log in as.
        return super()._own_environment(endpoint) | {"SERVICES_PASSWORD": SERVICES_PASSWORD}

    @property
    def services_database_url(self) -> str:
        url = urlsplit(self.database_url)
        host = url.netloc.rpartition("@")[2]
        return url._replace(netloc=f"{services_role.ROLE}:{SERVICES_PASSWORD}@{host}").geturl()

    def _start(
        self,
        name: str,
        command: Sequence[str],
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> Supervised:
        everybodys = self.environment
        way = confined(everybodys["SQS_ENDPOINT_URL"], ROLES[name])
        self.ways[name] = self._closing.enter_context(way)
        self.environment = {
            **everybodys,
            "SQS_ENDPOINT_URL": self.ways[name].url,
            "DATABASE_URL": self.services_database_url,
        }
        try:
            return super()._start(name, command, stop_signal)
        finally:
            self.environment = everybodys


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfinedStack]:
    with ExitStack() as closing, pytest.MonkeyPatch.context() as patch:
        for name in ("DATABASE_URL", "SQS_ENDPOINT_URL"):
            patch.delenv(name, raising=False)  # the stack makes servers of its own
        folder = tmp_path_factory.mktemp("confined")
        with ConfinedStack(folder, closing) as stack:
            yield stack


@pytest.mark.slow
def test_the_demo_runs_with_the_permissions_of_the_roles(stack: ConfinedStack) -> None:
    demonstration = Demonstration(stack)
    # The other tests may come first, and preflight tries what is denied.
    before = {name: len(way.calls()) for name, way in stack.ways.items()}

    demonstration.run()

    assert [row for row in demonstration.rows if not row.is_right] == []
    for name, way in stack.ways.items():
        calls = way.calls()[before[name] :]
        assert calls, f"the {name} never called SQS"
        assert [call.action for call in calls if call.fault] == [], name


def users(stack: ConfinedStack) -> list[str]:
    """Who has a session at the database."""
    with stack.connect() as owner:
        found = owner.execute(
            "SELECT DISTINCT usename FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    return [name for (name,) in found]


def test_the_services_do_not_own_what_they_write(stack: ConfinedStack) -> None:
    # A command that has just ended, as the owner's `preflight`, leaves its session for a moment.
    wait_until(
        lambda: stack.web_answers() and users(stack) == [services_role.ROLE],
        seconds=30,
        what="all sessions to be of the services' role",
    )
    with (
        psycopg.connect(stack.services_database_url, autocommit=True) as services,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        services.execute("ALTER TABLE orders_stockmovement DISABLE TRIGGER ALL")


@pytest.mark.parametrize("command", [("prune",), ("check_money",), ("reconcile",)])
def test_the_commands_of_the_schedules_run_with_the_services_role(
    stack: ConfinedStack, command: tuple[str, ...]
) -> None:
    stack.manage(*command, DATABASE_URL=stack.services_database_url)


@pytest.mark.parametrize(("name", "role"), [("web", "api"), ("worker", "worker")])
def test_the_operators_preflight_finds_every_permission(
    stack: ConfinedStack, name: str, role: str
) -> None:
    stack.manage("preflight", role, SQS_ENDPOINT_URL=stack.ways[name].url)


def test_dead_letters_are_discarded_with_the_apis_role(
    stack: ConfinedStack,
) -> None:
    stack.sqs.send_message(QueueUrl=stack.dlq_url, MessageBody="not an event")
    way = stack.ways["web"]
    before = len(way.calls())

    stack.manage(
        *("dlq", "discard", "--all", "--reason", "a test", "--yes"), SQS_ENDPOINT_URL=way.url
    )

    made = {call.action for call in way.calls()[before:]}
    assert made >= {"GetQueueAttributes", "ReceiveMessage", "DeleteMessageBatch"}
    assert [call.action for call in way.calls()[before:] if call.fault] == []


@pytest.mark.parametrize(
    ("name", "call", "queue"),
    [
        ("web", "receive_message", QUEUE),
        ("web", "purge_queue", QUEUE),
        ("web", "send_message", DEAD_LETTERS),
        ("worker", "receive_message", DEAD_LETTERS),
        ("worker", "purge_queue", QUEUE),
    ],
)
def test_what_a_role_does_not_list_is_denied(
    stack: ConfinedStack, name: str, call: str, queue: str
) -> None:
    client = boto3.client(
        "sqs",
        region_name=REGION,
        endpoint_url=stack.ways[name].url,
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )
    url = stack.queue_url if queue == QUEUE else stack.dlq_url
    arguments = {"MessageBody": "x"} if call == "send_message" else {}

    with pytest.raises(ClientError) as refusal:
        getattr(client, call)(QueueUrl=url, **arguments)

    assert refusal.value.response["Error"]["Code"] == "AccessDenied"
    stack.ways[name].forget()


@pytest.mark.parametrize(("name", "role"), [("web", "api"), ("worker", "worker")])
def test_the_role_allows_what_preflight_asks_for(name: str, role: str) -> None:
    wanted = {(action, QUEUE) for action in _ON_QUEUE[role]}  # type: ignore[index]
    wanted |= {(action, DEAD_LETTERS) for action in _ON_DLQ[role]}  # type: ignore[index]

    assert wanted <= allowed(ROLES[name])
