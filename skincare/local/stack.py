"""The whole shop on this machine: PostgreSQL, SQS, the API in gunicorn, one Celery worker."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

import boto3
import psycopg
import requests

from skincare.local.kept import Kept
from skincare.local.loopback import past_proxies
from skincare.local.postgres import database
from skincare.local.servers import Gateways, LocalServer, MailServer, ShopWindow
from skincare.local.sqs import CLIENT_ENVIRONMENT, sqs_endpoint
from skincare.local.supervised import ProgramError, Supervised

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

PROJECT = Path(__file__).parents[2]
RUN_FOLDER = PROJECT / "var" / "run"
MAIL_PAGE_PORT = 8025
WINDOW_PORT = 8080
WORKER_PROCESSES = 2
WEB = (sys.executable, "-m", "gunicorn", "skincare.wsgi", "--workers=1", "--threads=8")
WORKER = (sys.executable, "-m", "celery", "-A", "skincare", "worker")
START_SECONDS = 120.0  # a busy machine of two cores
STOP_SECONDS = 20.0  # the events of a demonstration take milliseconds


class Stack:
    """All its processes, against servers of the environment or of our own. A context manager.

    After the start: `web_url`, `database_url`, `queue_url`, `dlq_url`, `sqs` (a client), `emails`
    (a folder), `environment` (what the shop's processes get), and the gateways' secrets.
    """

    def __init__(self, folder: Path, *, web_port: int | None = None, keep: bool = False) -> None:
        """folder: takes logs, emails and keys. web_port: default is one that is free.

        keep: the database of our own stays there too, for the next start.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.emails = folder / "emails"
        self.kept = Kept(folder / "kept.json")
        self.has_own_database = not os.environ.get("DATABASE_URL")
        self._web_port = web_port or self.kept.port("web")
        self.web_url = f"http://127.0.0.1:{self._web_port}"
        self.midtrans_server_key = self.kept.secret("Midtrans server key")
        self.xendit_callback_token = self.kept.secret("Xendit callback token")
        self.xendit_secret_key = f"xnd_development_{self.kept.secret('Xendit secret key')}"
        self.gateways = Gateways(port=self.kept.port("gateways"), web_url=self.web_url)
        mail = MailServer(
            self.emails,
            smtp_port=self.kept.port("SMTP"),
            page_port=self.kept.port("mail page", preferred=MAIL_PAGE_PORT if keep else 0),
        )
        window = ShopWindow(
            port=self.kept.port("window", preferred=WINDOW_PORT if keep else 0),
            web_url=self.web_url,
            mail_url=mail.page_url,
        )
        self.servers: list[LocalServer] = [window, mail, self.gateways]
        self._keep = keep
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start everything. Raises ProgramError with the end of the log of what does not start."""
        with ExitStack() as stack:
            self._health = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "health.json"
            self.database_url = stack.enter_context(
                database(kept=self.folder / "database" if self._keep else None)
            )
            endpoint = stack.enter_context(
                sqs_endpoint(preferred_port=self.kept.port("SQS") if self._keep else 0)
            )
            self.environment = self._environment(endpoint)
            self.sqs = make_client(endpoint, self.environment)
            self.queue_url, self.dlq_url = self._make_queues()
            self.environment["ORDER_EVENTS_QUEUE_URL"] = self.queue_url
            programs = [
                (server, stack.enter_context(self._run(server.name, server.command())))
                for server in self.servers
            ]
            for server, program in programs:
                program.wait_listening(*server.ports, seconds=START_SECONDS)
            self.manage("migrate", "--no-input")
            self.manage("seed_catalogue")
            self.worker = self.start_worker()
            stack.callback(lambda: self.worker.stop())
            self.web = self.start_web()
            stack.callback(lambda: self.web.stop())
            self.web.wait_ready(self.web_answers, seconds=START_SECONDS)
            self.worker.wait_ready(self.worker_polls, seconds=START_SECONDS)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start_worker(self) -> Supervised:
        """Start a worker; `worker_polls` says when it is ready."""
        self._health.unlink(missing_ok=True)
        # SIGTERM waits for the poll in flight, up to 15 s: right where somebody uses the shop on.
        stop_signal = signal.SIGTERM if self._keep else signal.SIGQUIT
        return self._start("worker", WORKER, stop_signal=stop_signal)

    def start_web(self) -> Supervised:
        """Start the API; `web_answers` says when it is ready."""
        return self._start("web", [*WEB, f"--bind={self.web_url.removeprefix('http://')}"])

    def manage(self, *arguments: str, **environment: str) -> str:
        """Run one of Django's commands. Raises ProgramError with its output when it fails."""
        done = self._python("manage.py", *arguments, stderr=subprocess.STDOUT, **environment)
        if done.returncode:
            raise ProgramError(f"manage.py {arguments[0]} failed\n{done.stdout}")
        return done.stdout

    def connect(self) -> "psycopg.Connection[tuple[int]]":
        """A connection to the shop's database, for looking only."""
        return psycopg.connect(self.database_url, autocommit=True)

    @property
    def own_environment(self) -> dict[str, str]:
        """What of `environment` is the shop's own, and not this process's."""
        names = [*self._own_environment(""), *CLIENT_ENVIRONMENT, "ORDER_EVENTS_QUEUE_URL"]
        return {name: self.environment[name] for name in names if name in self.environment}

    def _environment(self, endpoint: str) -> dict[str, str]:
        inherited = dict(os.environ)
        if not os.environ.get("SQS_ENDPOINT_URL"):
            inherited = {k: v for k, v in inherited.items() if not k.startswith("AWS_")}
            inherited |= CLIENT_ENVIRONMENT
        return inherited | self._own_environment(endpoint)

    def _own_environment(self, endpoint: str) -> dict[str, str]:
        own = {
            **past_proxies(os.environ),
            "DJANGO_SETTINGS_MODULE": f"skincare.{'local.' if self._keep else ''}settings",
            "ENV_FILE": "",
            "APP_ENV": "development",
            "DEBUG": "false",
            "SECRET_KEY": self.kept.secret("secret key", size=50),
            "ALLOWED_HOSTS": "127.0.0.1,localhost",
            "DATABASE_URL": self.database_url,
            "SQS_ENDPOINT_URL": endpoint,
            "PAYMENT_PROVIDERS": "midtrans,xendit,sandbox",
            "MIDTRANS_SERVER_KEY": self.midtrans_server_key,
            "XENDIT_CALLBACK_TOKEN": self.xendit_callback_token,
            "XENDIT_SECRET_KEY": self.xendit_secret_key,
            "SENTRY_DSN": "",
            "WORKER_CONCURRENCY": str(WORKER_PROCESSES),
            "SQS_HEALTH_FILE": str(self._health),
        }
        for server in self.servers:
            own |= server.environment()
        return own

    def _make_queues(self) -> tuple[str, str]:
        """Make queue and dead-letter queue with production's attributes; return both URLs."""
        done = self._python("-m", "skincare.local.queues")
        if done.returncode:
            raise ProgramError(f"the queues could not be made\n{done.stderr}")
        url, dlq_url = done.stdout.split()
        return url, dlq_url

    def _python(
        self, *arguments: str, stderr: int = subprocess.PIPE, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a program of ours to its end, in the shop's environment."""
        return subprocess.run(  # noqa: S603 our own command
            [sys.executable, *arguments],
            cwd=PROJECT,
            env=self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def _start(
        self,
        name: str,
        command: Sequence[str],
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> Supervised:
        """Start the API or the worker."""
        return self._run(name, command, stop_signal)

    def _run(
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

    def worker_polls(self) -> bool:
        """Whether the worker has asked for messages."""
        return self._health.exists()

    def web_answers(self) -> bool:
        """Whether the API answers, and not another program that has taken its port."""
        try:
            return (
                self.web.listens(self._web_port)
                and requests.get(f"{self.web_url}/readyz", timeout=5).ok
            )
        except requests.RequestException:
            return False


def make_client(endpoint: str, environment: Mapping[str, str]) -> "SQSClient":
    """Return a client with the credentials of the shop's environment, not of this process's."""
    session = boto3.session.Session(
        region_name=environment["AWS_REGION"],
        aws_access_key_id=environment.get("AWS_ACCESS_KEY_ID"),
        aws_secret_access_key=environment.get("AWS_SECRET_ACCESS_KEY"),
        aws_session_token=environment.get("AWS_SESSION_TOKEN"),
    )
    return session.client("sqs", endpoint_url=endpoint)
