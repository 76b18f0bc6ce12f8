"""The shop as it runs in production, on one machine: web, outbox, SQS, two workers, PostgreSQL.

Between the shop and SQS is the fault proxy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psutil
import psycopg
import requests

from skincare.local.deadline import wait_until
from skincare.local.postgres import PostgresServer
from skincare.local.sqs import CLIENT_ENVIRONMENT, REGION, SQSServer, free_port
from skincare.local.supervised import Supervised
from skincare.sqs.client import make_client
from skincare.sqs.queues import create_queue_pair
from tests.faults.proxy import FaultProxy
from tests.integration.orders.mail_server import mail_server

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

ROOT = Path(__file__).parents[2]
SERVER_KEY = "SB-Mid-server-chaos"
PRODUCTS = [(f"CHAOS-{number}", 10_000 * (number + 1)) for number in range(6)]
STOCK = 1_000_000
WORKERS, PROCESSES = 2, 4
WORKER = (sys.executable, "-m", "celery", "-A", "skincare", "worker")
WEB = (sys.executable, "-m", "gunicorn", "skincare.wsgi", "--workers=2", "--threads=4")


class Shop:
    """All its processes. A context manager that stops them."""

    queue_name = "skincare-order-events"

    def __init__(self, folder: Path, *, seed: int) -> None:
        self.folder = folder
        self._stack = ExitStack()
        self._seed = seed

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.postgres = stack.enter_context(PostgresServer())
            sqs = stack.enter_context(SQSServer())
            self.proxy = stack.enter_context(FaultProxy(sqs.endpoint_url, seed=self._seed))
            self.mail = stack.enter_context(mail_server())
            self.client = self._make_queues(sqs.endpoint_url)
            self.environment = self._environment()
            self._run("manage.py", "migrate", "--no-input")
            self._stock_up()
            self.workers = [
                stack.enter_context(self._start_worker(number)) for number in range(WORKERS)
            ]
            wait_until(self.workers_ready, seconds=60, what="both workers")
            self.web = stack.enter_context(self._start_web())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """A connection to the database, past everything of ours."""
        return psycopg.connect(self.postgres.url, autocommit=True)

    def events_done(self) -> int:
        """How many events are processed; 0 while the database is away."""
        try:
            with self.connect() as connection:
                done = connection.execute(
                    "SELECT count(*)::int FROM events_processedevent WHERE status = 'done'"
                ).fetchone()
        except psycopg.OperationalError:
            return 0
        return done[0] if done else 0  # type: ignore[return-value]

    def workers_ready(self) -> bool:
        """Both have written into their health file that they consume."""
        return all(self._consumes(number) for number in range(WORKERS))

    def _consumes(self, number: int) -> bool:
        try:
            report = json.loads(self._health_file(number).read_text())
        except OSError:
            return False
        return report["pid"] == self.workers[number].pid and self.queue_name in report["queues"]

    def _health_file(self, number: int) -> Path:
        return self.folder / f"health-{number}.json"

    def worker_log(self, number: int) -> Path:
        """Where the worker, and each that replaced it, wrote its lines."""
        return self.folder / f"worker-{number}.log"

    def children(self, worker: Supervised) -> list[psutil.Process]:
        """The worker's pool processes."""
        try:
            return psutil.Process(worker.pid).children()
        except psutil.NoSuchProcess:
            return []

    def purge(self) -> None:
        """What somebody may type. Raises AssertionError if it is done."""
        command = [sys.executable, "-m", "celery", "-A", "skincare", "purge", "-f"]
        asked = subprocess.run(
            command, env=self.environment, cwd=ROOT, check=False, capture_output=True, text=True
        )
        assert asked.returncode != 0
        assert "is not purged" in asked.stderr

    def _make_queues(self, endpoint_url: str) -> SQSClient:
        from tests.chaos.settings import SQS_POLICY

        client = make_client(region=REGION, endpoint_url=endpoint_url, policy=SQS_POLICY)
        self.queue_url, self.dlq_url = create_queue_pair(
            client, name=self.queue_name, policy=SQS_POLICY
        )
        return client

    def _environment(self) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("DJANGO_", "AWS_"))}
        return {
            **inherited,
            **CLIENT_ENVIRONMENT,
            "LIMIT_BUYERS": "false",  # one address plays all buyers
            "APP_ENV": "test",
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
            "DATABASE_URL": self.postgres.url,
            "SQS_ENDPOINT_URL": self.proxy.url,
            "ORDER_EVENTS_QUEUE_URL": self.queue_url,
            "EMAIL_URL": f"smtp://127.0.0.1:{self.mail.port}",
            "MIDTRANS_SERVER_KEY": SERVER_KEY,
            "PAYMENT_PROVIDERS": "midtrans,sandbox",
            "PROVIDERS_ASKED": "none",
            "WORKER_CONCURRENCY": str(PROCESSES),
        }

    def _run(self, *command: str) -> None:
        subprocess.run(
            [sys.executable, *command],
            env=self.environment,
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def check_money(self) -> str:
        """What `manage.py check_money` says."""
        return subprocess.run(
            [sys.executable, "manage.py", "check_money"],
            env=self.environment,
            cwd=ROOT,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ).stdout

    def _stock_up(self) -> None:
        with self.connect() as connection, connection.cursor() as cursor:
            for sku, price in PRODUCTS:
                cursor.execute(
                    "WITH product AS (INSERT INTO orders_product (sku, name, description,"
                    " price_rupiah, stock, reserved, is_active, created_at, search_in_stock)"
                    " VALUES (%s, %s, '', %s, %s, 0, true, now(), true) RETURNING id)"
                    " INSERT INTO orders_stockmovement (event_id, product_id, kind, stock_delta,"
                    " reserved_delta, created_at) SELECT 'chaos', id, 'receive', %s, 0, now()"
                    " FROM product",
                    [sku, sku, price, STOCK, STOCK],
                )

    def _start_worker(self, number: int) -> Supervised:
        health = {"SQS_HEALTH_FILE": str(self._health_file(number))}
        return Supervised(
            [*WORKER, f"--hostname=worker{number}@chaos"],
            name=f"worker {number}",
            env=self.environment | health,
            cwd=ROOT,
            log=self.worker_log(number),
            grace=30,
        )

    def _start_web(self) -> Supervised:
        self.web_url = f"http://127.0.0.1:{free_port()}"
        address = self.web_url.removeprefix("http://")
        web = Supervised(
            [*WEB, f"--bind={address}"],
            name="the web server",
            env=self.environment,
            cwd=ROOT,
            log=self.folder / "web.log",
        )
        web.wait_ready(self._web_answers)
        return web

    def _web_answers(self) -> bool:
        try:
            return requests.get(f"{self.web_url}/v1/products", timeout=5).ok
        except requests.RequestException:
            return False
