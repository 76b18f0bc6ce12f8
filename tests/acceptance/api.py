"""A real gunicorn of the shop, spoken to over HTTP."""

import os
import signal
import sys
from pathlib import Path
from typing import Self
from uuid import uuid4

import requests

from skincare.local.deadline import wait_until
from skincare.local.sqs import free_port
from tests.acceptance.processes import ProcessHandle


class Api:
    """A gunicorn with two processes, spoken to over HTTP."""

    def __init__(self, environment: dict[str, str], folder: Path, sqs_url: str) -> None:
        self.port = free_port()
        self.process = ProcessHandle(
            [
                *(sys.executable, "-m", "gunicorn", "skincare.wsgi"),
                *("--workers", "2", "--bind", f"127.0.0.1:{self.port}"),
            ],
            name=f"api-{self.port}",
            environment={**environment, "SQS_ENDPOINT_URL": sqs_url},
            folder=folder,
            ready_prompt="Listening at",
        )

    def __enter__(self) -> Self:
        try:
            wait_until(self._is_up, seconds=90, what="the API to answer", every=0.2)
        except BaseException:
            self.process.teardown()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.teardown()

    def _is_up(self) -> bool:
        try:
            return requests.get(self.url("/healthz"), timeout=5).ok
        except requests.RequestException:
            return False

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def checkout(self) -> requests.Response:
        return requests.post(
            self.url("/v1/checkout"),
            json={
                "items": [{"sku": "CLN-GEL-100", "quantity": 1}],
                "email": "buyer@mail.example",
                "payment_method": "sandbox",
            },
            headers={"Idempotency-Key": uuid4().hex},
            timeout=30,
        )

    def kill(self) -> None:
        """Kill all its processes at once, as a machine that loses power does."""
        pids = [child.pid for child in self.process.children()]
        self.process.kill("SIGKILL")
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
