"""Fixtures for all tests: a real PostgreSQL and a real SQS server, started when a test first asks.

DATABASE_URL and SQS_ENDPOINT_URL in the environment are used instead of servers of our own. Without
the latter no test can reach an account at AWS: the credentials are replaced.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import hypothesis
import pytest
from django.conf import settings
from django.db import OperationalError, connections
from django.db.backends.postgresql.operations import DatabaseOperations
from environ import Env
from psycopg.errors import DeadlockDetected

from skincare.local.loopback import go_past_proxies
from skincare.local.postgres import database
from skincare.local.sqs import CLIENT_ENVIRONMENT, sqs_endpoint

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# On a busy machine an example takes long to draw and to try, and nothing is wrong with it.
hypothesis.settings.register_profile(
    "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("patient")
go_past_proxies()
# What a shell starts in the background ignores this one, and so would all that tests send it to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if not os.environ.get("SQS_ENDPOINT_URL"):
    os.environ.pop("AWS_PROFILE", None)
    os.environ.update(CLIENT_ENVIRONMENT)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the files into the order in which the processes of pytest-xdist end soonest."""
    others = float(config.getini("timeout"))
    may_take: dict[Path, float] = {}
    for item in items:
        limit = item.get_closest_marker("timeout")
        seconds = limit.args[0] if limit else others
        may_take[item.path] = max(seconds, may_take.get(item.path, others))
    waiting = {item.path for item in items if item.get_closest_marker("waits")}
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    files = {path: n for n, path in enumerate(order_of_files(may_take, waiting, processes))}
    items.sort(key=lambda item: files[item.path])


def order_of_files(may_take: dict[Path, float], waiting: set[Path], processes: int) -> list[Path]:
    """Begin with the files that may take longest, so that no process ends alone with one of them.

    may_take: seconds, the limit of each file. waiting: what waits for minutes comes before them, as
    it takes nothing from the others. Files of a folder stay together: what they share is started
    once in a process.
    """
    # By name, the folders of what takes long come before `unit`.
    files = sorted(may_take, key=lambda path: (path not in waiting, -may_take[path], path.parent))
    first, rest = files[:processes], files[processes:]
    # A process gets its second file while it is at its first: one that waits gets a short one.
    many = max(len(rest) - len(waiting), 0)
    return [*first, *rest[many:], *rest[:many]]


class QueuePair(NamedTuple):
    url: str
    dlq_url: str


@pytest.fixture(scope="session")
def database_url() -> Iterator[str]:
    """The PostgreSQL server of this session; pytest-django makes the test database on it."""
    with database() as url:
        yield url


@pytest.fixture(scope="session")
def django_db_modify_db_settings(database_url: str) -> None:
    """pytest-django's seam before it makes the test database: point Django at our server."""
    connections.settings["default"].update(Env.db_url_config(database_url))


@pytest.fixture(scope="session")
def test_database_url(database_url: str, django_db_setup: None) -> str:
    """The URL of the test database itself, for processes that a test starts."""
    url = urlsplit(database_url)
    return url._replace(path=f"/{connections['default'].settings_dict['NAME']}").geturl()


@pytest.fixture(scope="module", autouse=True)
def no_connection_of_other_files() -> None:
    """Begin each file without a connection, whatever set-up or tests in this process left open.

    What looks after its connection, as an event's task does, would be taken for a test that uses
    the database without saying so.
    """
    connections.close_all()


FLUSHES = 5
"""Tries to empty the tables; each waits a second until PostgreSQL finds a deadlock."""


@pytest.fixture(scope="session", autouse=True)
def flush_again_after_a_deadlock() -> Iterator[None]:
    """Empty the tables after a test though processes that several tests share still read them.

    TRUNCATE locks them all, one after the other; a sweep that joins two may have locked one.
    """
    flush = DatabaseOperations.execute_sql_flush

    def patiently(operations: DatabaseOperations, sql_list: list[str]) -> None:
        for tries_left in reversed(range(FLUSHES)):
            try:
                flush(operations, sql_list)
            except OperationalError as error:
                if not tries_left or not isinstance(error.__cause__, DeadlockDetected):
                    raise
            else:
                return

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "execute_sql_flush", patiently)
        yield


@pytest.fixture(scope="session")
def sqs_server() -> Iterator[str]:
    """The endpoint URL of the SQS server of this session."""
    with sqs_endpoint() as url:
        yield url


@pytest.fixture(scope="session")
def sqs_client(sqs_server: str) -> "SQSClient":
    """A client as production makes it, but for the endpoint."""
    from skincare.sqs.client import make_client

    return make_client(
        region=settings.AWS_REGION, endpoint_url=sqs_server, policy=settings.SQS_POLICY
    )


@pytest.fixture
def queue_pair(sqs_client: "SQSClient") -> Iterator[QueuePair]:
    """A new queue and its DLQ with the attributes that production has, removed after the test."""
    from skincare.sqs.queues import create_queue_pair

    name = f"test-{uuid4().hex}"
    pair = QueuePair(*create_queue_pair(sqs_client, name=name, policy=settings.SQS_POLICY))
    yield pair
    for url in pair:
        sqs_client.delete_queue(QueueUrl=url)


@pytest.fixture(scope="session")
def docker_client() -> None:
    """pytest-celery's way to Docker, closed: its clusters run on local processes here."""
    pytest.fail("a test asked for Docker; workers and brokers are local processes here")
