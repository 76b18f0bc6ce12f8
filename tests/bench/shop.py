"""The shop of a subject as it runs in production: database, web server, worker, relay."""

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from skincare.local.postgres import PostgresServer
from skincare.local.sqs import CLIENT_ENVIRONMENT, REGION, free_port
from skincare.local.supervised import Supervised
from skincare.sqs.client import make_client
from skincare.sqs.queues import create_queue_pair
from tests.bench import load
from tests.bench.server import BenchServer
from tests.bench.subject import Subject
from tests.bench.workers.transport import POLICY

STOCK = 1_000_000_000
EMAIL = "pembeli@skincare.example"
SERVER_KEY = "SB-Mid-server-bench"
WEB_PROCESSES = 2
CLIENTS = 16
START_SECONDS = 120.0

Connection = psycopg.Connection[tuple[Any, ...]]


class Shop:
    """One subject's shop on a database and a queue of its own."""

    def __init__(
        self, subject: Subject, server: BenchServer, database_url: str, folder: Path
    ) -> None:
        self.subject = subject
        self.database_url = database_url
        self.folder = folder
        self.queue = f"bench-{uuid4().hex[:12]}"
        client = make_client(region=REGION, endpoint_url=server.endpoint_url, policy=POLICY)
        create_queue_pair(client, name=self.queue, policy=POLICY)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("DJANGO_", "AWS_"))}
        self.environment = {
            **inherited,
            **CLIENT_ENVIRONMENT,
            "PATH": f"{subject.programs}:{os.environ['PATH']}",
            "DJANGO_SETTINGS_MODULE": "skincare.settings",
            "LIMIT_BUYERS": "false",  # one address plays all buyers
            "APP_ENV": "test",  # logs as in production
            "DEBUG": "false",
            "SECRET_KEY": secrets.token_urlsafe(50),
            "ALLOWED_HOSTS": "127.0.0.1",
            "DATABASE_URL": database_url,
            "SQS_ENDPOINT_URL": server.endpoint_url,
            "ORDER_EVENTS_QUEUE_URL": f"{server.endpoint_url}/000000000000/{self.queue}",
            "EMAIL_URL": "dummymail://",  # emails are written and go nowhere
            "PAYMENT_PROVIDERS": "midtrans,xendit,sandbox",
            "MIDTRANS_SERVER_KEY": SERVER_KEY,
            "LOG_LEVEL": "INFO",  # as in production; it goes into a file
            "SQS_HEALTH_FILE": str(folder / f"{self.queue}.health.json"),
            "WEB_CONCURRENCY": str(WEB_PROCESSES),
        }

    def prepare(self) -> None:
        """Migrate, and fill the shelves."""
        self.subject.manage(self.environment, "migrate", "--no-input")
        self.subject.manage(self.environment, "seed_catalogue")
        with self.connect() as connection:
            connection.execute("UPDATE orders_product SET stock = %s", [STOCK])

    def connect(self) -> Connection:
        """A connection past everything of the shop."""
        return psycopg.connect(self.database_url, autocommit=True)

    def skus(self) -> list[str]:
        """The products that can be bought, in a fixed order."""
        with self.connect() as connection:
            rows = connection.execute(
                "SELECT sku FROM orders_product WHERE is_active AND price_rupiah > 0 ORDER BY id"
            )
            return [row[0] for row in rows]

    @contextmanager
    def web(self, **environment: str) -> Iterator[int]:
        """The web server with two processes; yields its port."""
        port = free_port()
        command = [
            *(self.subject.python, "-m", "gunicorn", "skincare.wsgi"),
            *(f"--bind=127.0.0.1:{port}", f"--workers={WEB_PROCESSES}"),
        ]
        with self._start("web", command, environment) as program:
            program.wait_ready(lambda: answers(port, "/v1/products?limit=1"), seconds=START_SECONDS)
            yield port

    @contextmanager
    def relay(self) -> Iterator[Supervised]:
        command = [self.subject.python, "manage.py", "relay_outbox"]
        with self._start("relay", command, {}) as program:
            yield program

    def _start(self, name: str, command: Sequence[str], more: Mapping[str, str]) -> Supervised:
        return Supervised(
            command,
            name=f"{self.subject.name}: {name}",
            env={**self.environment, **more},
            cwd=self.subject.root,
            log=self.folder / f"{self.queue}-{name}.log",
        )


def answers(port: int, path: str) -> bool:
    """Whether something there answers 200."""
    client = load.Client(port)
    try:
        return client.send(load.get(path)).status == 200
    except (OSError, IndexError):
        return False
    finally:
        client.close()


class Databases:
    """One PostgreSQL server for all subjects, each database a copy of the subject's template."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._server = self._stack.enter_context(PostgresServer())
        self._templates: dict[str, str] = {}
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def create(self, template: str = "template1") -> str:
        """Make a database; return its URL. Nobody may be connected to the template (a URL)."""
        name = f"bench_{uuid4().hex[:12]}"
        source = urlsplit(template).path.removeprefix("/")
        with psycopg.connect(self._server.url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                    sql.Identifier(name), sql.Identifier(source)
                )
            )
        return urlunsplit(urlsplit(self._server.url)._replace(path=f"/{name}"))

    def sessions(self, database_url: str) -> int:
        """How many sessions the database has had so far."""
        with psycopg.connect(self._server.url, autocommit=True) as connection:
            row = connection.execute(
                "SELECT sessions FROM pg_stat_database WHERE datname = %s",
                [urlsplit(database_url).path.removeprefix("/")],
            ).fetchone()
        return row[0] if row else 0

    def shop(self, subject: Subject, server: BenchServer, folder: Path) -> Shop:
        """An empty shop with a catalogue."""
        if subject.name not in self._templates:
            template = Shop(subject, server, self.create(), folder)
            template.prepare()
            self._templates[subject.name] = template.database_url
        return Shop(subject, server, self.create(self._templates[subject.name]), folder)


def checkouts(skus: Sequence[str], count: int, *, method: str, items: int = 2) -> list[bytes]:
    """Requests for `count` orders, of `items` products each that follow one another in `skus`."""
    return [
        load.post(
            "/v1/checkout",
            {
                "items": [
                    {"sku": skus[(number + more) % len(skus)], "quantity": 1}
                    for more in range(min(items, len(skus)))
                ],
                "email": EMAIL,
                "payment_method": method,
            },
            Idempotency_Key=uuid4().hex,
        )
        for number in range(count)
    ]
