"""One run of the whole demonstration, with everything in it that must not be told."""

import json
import os
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import requests

from skincare.local.deadline import wait_until
from skincare.local.demo import Demonstration
from skincare.local.stack import Stack
from skincare.sqs.queues import depth
from tests.integration.telemetry.sentry_server import SentryServer
from tests.log_lines import Line, read_log

CARD = "4811111111111114"


class WatchedStack(Stack):
    """The stack at its most talkative, with its errors reported to `sentry`."""

    def __init__(self, folder: Path, sentry: SentryServer) -> None:
        super().__init__(folder)
        self._sentry = sentry

    def _environment(self, endpoint: str) -> dict[str, str]:
        told = {"LOG_LEVEL": "DEBUG", "SENTRY_DSN": self._sentry.dsn, "RELEASE": "v1.2.3"}
        return super()._environment(endpoint) | told


@dataclass(frozen=True)
class Watched:
    """What the processes wrote and reported, and what must be nowhere in it."""

    web: list[Line]
    worker: list[Line]
    reports: list[dict[str, Any]]
    text: str
    private: list[str]
    failing_event_id: str
    left_the_environment_alone: bool

    @property
    def lines(self) -> list[Line]:
        return self.web + self.worker

    def of(self, event: str) -> list[Line]:
        return [line for line in self.lines if line["event"] == event]

    def total(self, metric: str) -> float:
        return sum(sum(line[metric]) for line in self.of("metrics") if metric in line)


@pytest.fixture(scope="package")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    folder = tmp_path_factory.mktemp("watched")
    before = dict(os.environ)
    with SentryServer() as sentry, WatchedStack(folder, sentry) as stack:
        demonstration = Demonstration(stack)
        demonstration.run()
        assert all(row.is_right for row in demonstration.rows), demonstration.rows
        private = _tempt(stack)
        failing = _send_an_event_that_fails(stack)
        wait_until(
            lambda: any(r.get("tags", {}).get("receive_count") == "5" for r in sentry.reports),
            seconds=30,
            what="the report of the last receive",
        )
        private += [*_secrets(stack), *_emails(stack), "this is not an event"]
    return Watched(
        web=read_log(folder / "web.log"),
        worker=read_log(folder / "worker.log"),
        reports=sentry.reports,
        text=(folder / "web.log").read_text() + (folder / "worker.log").read_text(),
        private=private,
        failing_event_id=failing,
        left_the_environment_alone=os.environ == before,
    )


def _secrets(stack: Stack) -> list[str]:
    names = ("SECRET_KEY", "MIDTRANS_SERVER_KEY", "XENDIT_CALLBACK_TOKEN", "XENDIT_SECRET_KEY")
    return [stack.environment[name] for name in names]


def _emails(stack: Stack) -> list[str]:
    with stack.connect() as connection:
        found = connection.execute("SELECT DISTINCT email FROM orders_order")
        return [str(email) for (email,) in found]


def _tempt(stack: Stack) -> list[str]:
    """Put private words wherever a client can; returns them."""
    web = stack.web_url
    person, token = "dewi.lestari@private.example", f"token{uuid4().hex}"
    headers = {"Authorization": f"Bearer {token}", "X-Callback-Token": token, "Cookie": token}
    body = {"items": [], "email": person, "payment_method": CARD, "note": token}
    for call in (
        lambda: requests.get(f"{web}/v1/products?q={person}", headers=headers, timeout=10),
        lambda: requests.get(f"{web}/v1/nothing?token={token}", headers=headers, timeout=10),
        lambda: requests.get(f"{web}/admin/login/?next={token}", headers=headers, timeout=10),
        lambda: requests.post(
            f"{web}/v1/checkout", json=body, headers={**headers, "Idempotency-Key": "k"}, timeout=10
        ),
        lambda: requests.post(f"{web}/v1/webhooks/xendit", json=body, headers=headers, timeout=10),
        lambda: requests.post(
            f"{web}/v1/webhooks/midtrans",
            json={**body, "masked_card": CARD, "signature_key": token},
            timeout=10,
        ),
        lambda: requests.post(f"{web}/v1/webhooks/xendit", data=token * 9000, timeout=10),
        lambda: requests.post(f"{web}/v1/checkout", data=token * 9000, timeout=10),
    ):
        call()
    _send_raw(web, f"GET /v1/products?q={token} HTTP/9.9\r\nX-Note: {person}\r\n\r\n")
    _send_raw(web, f"{token} {person}\r\n\r\n")
    # A Celery message for a task that exists, with arguments that it does not take.
    stack.sqs.send_message(
        QueueUrl=stack.queue_url, MessageBody=json.dumps({"task": "orders.x", "note": token})
    )
    return [person, token, CARD]


def _send_raw(web_url: str, text: str) -> None:
    address = urlsplit(web_url)
    with socket.create_connection((str(address.hostname), int(address.port or 0)), 10) as sender:
        sender.sendall(text.encode())
        sender.recv(4096)


def _send_an_event_that_fails(stack: Stack) -> str:
    """An event of a payment that does not exist: the task raises until it is in the DLQ."""
    event_id = f"nobody:{uuid4()}"
    event = {
        "event_id": event_id,
        "event_type": "payment.processed",
        "order_id": str(uuid4()),
        "payment_id": str(uuid4()),
        "user_id": "guest",
        "amount_rupiah": 4242,
        "created_at": datetime.now(UTC).isoformat(),
        "request_id": "request-of-the-failure",
    }
    before = depth(stack.sqs, stack.dlq_url).visible
    stack.sqs.send_message(QueueUrl=stack.queue_url, MessageBody=json.dumps(event))
    wait_until(
        lambda: depth(stack.sqs, stack.dlq_url).visible >= before + 1,
        seconds=60,
        what="the failing event in the DLQ",
        every=0.1,
    )
    return event_id
