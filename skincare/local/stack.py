"""The whole shop on this machine: PostgreSQL, SQS, the API in gunicorn, one Celery worker."""

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psycopg
import requests
from django.conf import settings

from skincare.local.postgres import database
from skincare.local.sqs import CLIENT_ENVIRONMENT, free_port, sqs_endpoint
from skincare.local.supervised import ProgramError, Supervised
from skincare.sqs.client import make_client
from skincare.sqs.policy import SQSPolicy
from skincare.sqs.queues import create_queue_pair

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

PROJECT = Path(__file__).parents[2]
QUEUE = "skincare-order-events"
WORKER_PROCESSES = 2
WEB = (sys.executable, "-m", "gunicorn", "skincare.wsgi", "--workers=1", "--threads=8")
WORKER = (sys.executable, "-m", "celery", "-A", "skincare", "worker")
START_SECONDS = 120.0  # a busy machine of two cores
STOP_SECONDS = 20.0  # the events of a demonstration take milliseconds


class Stack:
    """All its processes, against servers of the environment or of our own. A context manager.

    After the start: `web_url`, `database_url`, `queue_url`, `dlq_url`, `sqs` (a client), `emails`
    (a folder), and the gateways' secrets, new for each run.
    """

    def __init__(self, folder: Path, *, web_port: int | None = None) -> None:
        """folder: takes logs and emails. web_port: default is one that is free."""
        self.folder = folder
        self.emails = folder / "emails"
        self.web_url = f"http://127.0.0.1:{web_port or free_port()}"
        self.has_own_database = not os.environ.get("DATABASE_URL")
        self.midtrans_server_key = secrets.token_urlsafe(16)
        self.xendit_callback_token = secrets.token_urlsafe(16)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start everything. Raises ProgramError with the end of the log of what does not start."""
        with ExitStack() as stack:
            self._health = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "health.json"
            self.database_url = stack.enter_context(database())
            endpoint = stack.enter_context(sqs_endpoint())
            self.environment = self._environment(endpoint)
            self.sqs, self.queue_url, self.dlq_url = make_queues(endpoint, self.environment)
            self.environment["ORDER_EVENTS_QUEUE_URL"] = self.queue_url
            self.manage("migrate", "--no-input")
            self.manage("seed_catalogue")
            # Not SIGTERM: it waits for the long poll in flight, up to 15 s, for nothing here.
            self.worker = self._start("worker", WORKER, stop_signal=signal.SIGQUIT)
            stack.enter_context(self.worker)
            address = self.web_url.removeprefix("http://")
            self.web = stack.enter_context(self._start("web", [*WEB, f"--bind={address}"]))
            self.web.wait_ready(self._web_answers, seconds=START_SECONDS)
            self.worker.wait_ready(self._health.exists, seconds=START_SECONDS)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def manage(self, *arguments: str, **environment: str) -> None:
        """Run one of Django's commands. Raises ProgramError with its output when it fails."""
        done = subprocess.run(  # noqa: S603 our own command
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env=self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise ProgramError(f"manage.py {arguments[0]} failed\n{done.stdout}")

    def wait_for_an_end(self) -> Supervised:
        """Block until the API or the worker ends by itself; returns which."""
        while True:
            for program in (self.web, self.worker):
                if not program.running:
                    return program
            time.sleep(1)

    def connect(self) -> "psycopg.Connection[tuple[int]]":
        """A connection to the shop's database, for looking only."""
        return psycopg.connect(self.database_url, autocommit=True)

    def _environment(self, endpoint: str) -> dict[str, str]:
        inherited = dict(os.environ)
        if not os.environ.get("SQS_ENDPOINT_URL"):
            inherited = {k: v for k, v in inherited.items() if not k.startswith("AWS_")}
            inherited |= CLIENT_ENVIRONMENT
        return inherited | {
            "DJANGO_SETTINGS_MODULE": "skincare.settings",
            "ENV_FILE": "",
            "APP_ENV": "development",
            "DEBUG": "false",
            "SECRET_KEY": secrets.token_urlsafe(50),
            "ALLOWED_HOSTS": "127.0.0.1,localhost",
            "DATABASE_URL": self.database_url,
            "SQS_ENDPOINT_URL": endpoint,
            "EMAIL_URL": f"filemail://{self.emails}",
            "PAYMENT_PROVIDERS": "midtrans,xendit,sandbox",
            "MIDTRANS_SERVER_KEY": self.midtrans_server_key,
            "XENDIT_CALLBACK_TOKEN": self.xendit_callback_token,
            "SENTRY_DSN": "",
            "WORKER_CONCURRENCY": str(WORKER_PROCESSES),
            "SQS_HEALTH_FILE": str(self._health),
        }

    def _start(
        self,
        name: str,
        command: Sequence[str],
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> Supervised:
        return Supervised(
            command,
            name=f"the {name}",
            env=self.environment,
            cwd=PROJECT,
            log=self.folder / f"{name}.log",
            stop_signal=stop_signal,
            grace=STOP_SECONDS,
        )

    def _web_answers(self) -> bool:
        try:
            return requests.get(f"{self.web_url}/readyz", timeout=5).ok
        except requests.RequestException:
            return False


def make_queues(endpoint: str, environment: dict[str, str]) -> "tuple[SQSClient, str, str]":
    """Make queue and DLQ with production's attributes; returns a client and both URLs."""
    os.environ |= {name: environment[name] for name in environment if name.startswith("AWS_")}
    policy = production_policy()
    client = make_client(region=environment["AWS_REGION"], endpoint_url=endpoint, policy=policy)
    return client, *create_queue_pair(client, name=QUEUE, policy=policy)


def production_policy() -> SQSPolicy:
    """The numbers' one home is the settings. This process takes nothing else from them."""
    os.environ |= {"DJANGO_SETTINGS_MODULE": "skincare.settings", "APP_ENV": "development"}
    os.environ |= {
        "ENV_FILE": "",
        "LOG_LEVEL": "ERROR",
    }  # of this process: its output is for a reader
    policy: SQSPolicy = settings.SQS_POLICY
    return policy
