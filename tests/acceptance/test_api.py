"""A real gunicorn: checkout answers whatever SQS does, and its events go out all the same."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self
from uuid import uuid4

import pytest
import requests
from django.conf import settings
from pytest_celery import CeleryTestSetup

from orders.models import Order
from orders.status import OrderStatus
from skincare.events.models import OutboxEvent
from skincare.local.deadline import busyness, wait_until
from skincare.local.sqs import free_port
from tests.acceptance.conftest import Shop, Stage
from tests.acceptance.processes import ProcessHandle
from tests.faults.faults import Fault, Hang, Status
from tests.faults.proxy import FaultProxy

pytestmark = [pytest.mark.django_db(transaction=True)]

#: A request that waited for SQS would take at least the client's timeouts.
MUCH_LESS_THAN_SQS_TIMEOUTS = 2.0  # seconds


@pytest.fixture(scope="module")
def shared_proxy(sqs_server: str) -> Iterator[FaultProxy]:
    with FaultProxy(sqs_server) as running:
        yield running


@pytest.fixture
def proxy(shared_proxy: FaultProxy) -> Iterator[FaultProxy]:
    """The API's way to SQS; the workers have their own."""
    yield shared_proxy
    shared_proxy.clear()


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


@pytest.fixture(scope="module")
def api(
    shared_stage: Stage, shared_proxy: FaultProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("api")
    with Api(shared_stage.environment, folder, shared_proxy.url) as running:
        yield running


def unsent() -> int:
    return OutboxEvent.objects.filter(sent_at__isnull=True).count()


def wait_until_paid(shop: Shop, *order_ids: str, seconds: float = 60) -> None:
    def all_paid() -> bool:
        orders = Order.objects.filter(pk__in=order_ids, status=OrderStatus.PAID)
        return orders.count() == len(order_ids)

    wait_until(all_paid, seconds=seconds, what="the orders to be paid", every=0.1)
    shop.wait_for_empty_queue()


def test_a_checkout_becomes_a_paid_order_and_two_emails(
    celery_setup: CeleryTestSetup, shop: Shop, api: Api
) -> None:
    answer = api.checkout()

    assert answer.status_code == 201, answer.text
    wait_until_paid(shop, answer.json()["order_id"])
    assert len(shop.emails()) == 2  # confirmation and receipt


@pytest.mark.parametrize("fault", [Status(503), Hang(), None], ids=["503", "hang", "refused"])
def test_checkout_answers_while_sqs_is_down_and_the_event_follows(
    fault: Fault | None, celery_setup: CeleryTestSetup, shop: Shop, api: Api, proxy: FaultProxy
) -> None:
    if fault is None:
        proxy.refuse()
    else:
        proxy.inject(fault)

    started = time.monotonic()
    answers = [api.checkout() for _ in range(5)]
    assert time.monotonic() - started < busyness() * 5 * MUCH_LESS_THAN_SQS_TIMEOUTS

    assert [answer.status_code for answer in answers] == [201] * 5
    assert unsent() == 10
    proxy.clear()
    wait_until_paid(shop, *(answer.json()["order_id"] for answer in answers))
    assert unsent() == 0
    assert len(shop.emails()) == 10


def test_a_process_killed_between_commit_and_send_loses_nothing(
    celery_setup: CeleryTestSetup,
    shop: Shop,
    api: Api,
    proxy: FaultProxy,
    stage: Stage,
    tmp_path: Path,
) -> None:
    proxy.refuse()
    with Api(stage.environment, tmp_path, proxy.url) as doomed:
        answer = doomed.checkout()
        assert answer.status_code == 201
        doomed.kill()
    assert unsent() == 2

    proxy.clear()  # another process's relay sweeps what the dead one left

    # It may have died while it sent: then its lease has to end first.
    wait_until_paid(shop, answer.json()["order_id"], seconds=60 + settings.RELAY_LEASE_SECONDS)
    assert len(shop.emails()) == 2
