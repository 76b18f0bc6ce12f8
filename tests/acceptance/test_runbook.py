"""Faults of a real shop, each found and mended by the words of the runbook, nothing else."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from orders import catalogue
from orders.checkout import Item, place_order
from orders.models import Order
from orders.status import OrderStatus
from payments.models import Payment
from skincare.events import relay
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.local.deadline import wait_until
from skincare.local.servers import MailServer
from skincare.local.sqs import free_port
from skincare.local.supervised import ProgramError, Supervised
from skincare.operations.groups import FINANCE
from skincare.operations.models import WorkerReport
from skincare.sqs.queues import depth
from tests.acceptance.browser.conftest import with_its_permissions
from tests.acceptance.conftest import Stage, start_worker
from tests.acceptance.processes import LocalWorker
from tests.acceptance.test_database_away import gate
from tests.faults.faults import Denied
from tests.faults.proxy import FaultProxy
from tests.integration.operations.sending import send_to
from tests.integration.operations.test_runbook_faults import run, steps
from tests.integration.payments.gateways import midtrans_posts
from tests.unit.payments import midtrans_notifications

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(400),
]

POLL_ENDS = 1.5  # seconds after which no poll of a frozen worker takes a message (settings.py)
LATE = timedelta(minutes=5)  # what is older than that is told to be late
SetUp = Callable[..., AbstractContextManager[Stage]]


@pytest.fixture
def proxy(sqs_server: str) -> Iterator[FaultProxy]:
    with FaultProxy(sqs_server) as running:
        yield running


@pytest.fixture
def look_at(
    proxy: FaultProxy, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Stage], None]:
    """Let the commands, and a relay of this process, reach the stage's queue, by the proxy."""
    catalogue.seed()

    def looking(stage: Stage) -> None:
        settings.ORDER_EVENTS_QUEUE_URL = stage.queues.url
        settings.SQS_ENDPOINT_URL = proxy.url
        send_to(
            stage.queues.url, endpoint_url=proxy.url, settings=settings, monkeypatch=monkeypatch
        )

    return looking


def place(*, method: str = "midtrans") -> Order:
    placed = place_order(
        items=[Item("CLN-GEL-100", 1)],
        email="buyer@mail.example",
        payment_method=method,
        idempotency_key=os.urandom(8).hex(),
    )
    return Order.objects.get(pk=placed.order_id)


def wait_until_done(order: Order, events: int) -> None:
    """Relay what is due, and wait until a worker has done so many events of the order."""

    def done() -> bool:
        relay.run_once()
        found = ProcessedEvent.objects.filter(order_id=str(order.pk), status="done")
        return found.count() == events

    wait_until(done, seconds=60, what=f"{events} events to be done", every=0.2)


def test_a_message_that_nobody_can_read(
    stage: Stage, look_at: Callable[[Stage], None], sqs_client: "SQSClient"
) -> None:
    look_at(stage)
    sqs_client.send_message(QueueUrl=stage.queues.url, MessageBody="from the old script")
    wait_until(
        lambda: depth(sqs_client, stage.queues.dlq_url).visible == 1,
        seconds=60,
        what="the message to be given up",
        every=0.2,
    )
    [found] = sqs_client.receive_message(QueueUrl=stage.queues.dlq_url, VisibilityTimeout=0)[
        "Messages"
    ]

    [block] = steps("A message that nobody can read")
    run(block, MESSAGE_ID=found["MessageId"])

    assert sum(depth(sqs_client, stage.queues.dlq_url)) == 0


def test_money_that_does_not_fit(stage: Stage, look_at: Callable[[Stage], None]) -> None:
    look_at(stage)
    order = place()
    document = midtrans_notifications.bank_transfer(
        order_id=str(order.pk), gross_amount=f"{order.total_rupiah + 1}.00"
    )
    assert midtrans_posts(document).status_code == 200
    wait_until_done(order, 1)
    payment = Payment.objects.get(order=order)
    found, mended = steps("Money that does not fit")

    run(found)
    page = reverse("operations:held_payment", args=[payment.pk])
    asking = {"action": "request", "decision": "accept", "reason": "the bank rounds up"}
    person("dewi").post(page, asking)
    person("putu").post(page, {"action": "accept"})
    wait_until_done(order, 2)
    run(mended)

    assert Order.objects.get(pk=order.pk).status == OrderStatus.PAID


def person(name: str) -> Client:
    """Somebody of finance, at the admin's pages."""
    user = get_user_model().objects.create_user(name, is_staff=True)
    user.groups.add(with_its_permissions(FINANCE))
    client = Client()
    client.force_login(user)
    return client


def test_sqs_denies(stage: Stage, look_at: Callable[[Stage], None], proxy: FaultProxy) -> None:
    look_at(stage)
    proxy.inject(Denied(), action="SendMessageBatch")
    order = place()
    assert relay.run_once().failed == 1
    OutboxEvent.objects.update(created_at=timezone.now() - LATE)
    found, mended = steps("SQS denies what it should allow")

    run(found)
    proxy.clear()  # the permission is back
    OutboxEvent.objects.update(next_attempt_at=timezone.now())  # half a minute later
    wait_until_done(order, 1)
    run(mended)


def test_the_email_provider_is_down(
    set_up: SetUp, tmp_path: Path, look_at: Callable[[Stage], None]
) -> None:
    provider = MailServer(tmp_path / "provider", smtp_port=free_port(), page_port=free_port())
    with set_up(tmp_path, 1, **provider.environment()) as stage:
        look_at(stage)
        order = place()
        relay.run_once()
        waiting = ProcessedEvent.objects.filter(put_off_until__isnull=False)
        wait_until(waiting.exists, seconds=60, what="the email to wait", every=0.2)
        found, by_hand, mended = steps("The email provider is down")

        run(found)
        with Supervised(provider.command(), name="the email provider") as server:
            server.wait_listening(*provider.ports)
            run(by_hand, EVENT_ID=waiting.get().event_id)
            wait_until_done(order, 1)
            run(mended)

    assert len(list(provider.folder.glob("*.eml"))) == 1


@pytest.mark.usefixtures("no_other_worker")
def test_a_worker_that_hangs(
    set_up: SetUp, tmp_path: Path, look_at: Callable[[Stage], None]
) -> None:
    with set_up(tmp_path, 1) as stage:
        look_at(stage)
        [worker] = stage.cluster.nodes
        wait_for_report(worker)
        processes = [psutil.Process(worker.container.pid), *worker.container.children()]
        for process in processes:
            process.suspend()
        time.sleep(POLL_ENDS)  # the poll in flight takes messages
        order = place()
        OutboxEvent.objects.update(created_at=timezone.now() - LATE)
        relay.run_once()
        OutboxEvent.objects.update(sent_at=timezone.now() - LATE)
        WorkerReport.objects.update(seen_at=timezone.now() - LATE)
        found, mended = steps("A worker that hangs")

        run(found)
        for process in processes:  # as ECS does with what is not healthy
            process.kill()
        with another_worker(stage):
            wait_until_done(order, 1)
            run(mended)


@contextmanager
def another_worker(stage: Stage) -> Iterator[None]:
    """As ECS starts one in the place of one that ended; it has reported by the time it is there."""
    before = WorkerReport.objects.count()
    another = start_worker("another", stage.app, stage.environment, stage.folder)
    try:
        assert another.ready()
        wait_until(
            lambda: WorkerReport.objects.count() > before,
            seconds=60,
            what="the other worker's report",
            every=0.2,
        )
        yield
    finally:
        another.teardown()


def wait_for_report(worker: LocalWorker) -> None:
    reports = WorkerReport.objects.filter(pid=worker.container.pid)
    wait_until(reports.exists, seconds=60, what="the first report", every=0.2)


def wait_for_line(worker: LocalWorker, event: str) -> None:
    wait_until(
        lambda: event in worker.container.logs(), seconds=90, what=f"{event} in the log", every=0.2
    )


@pytest.mark.usefixtures("no_other_worker")
def test_a_task_that_hung_in_a_worker_that_died(
    set_up: SetUp, tmp_path: Path, look_at: Callable[[Stage], None]
) -> None:
    with set_up(tmp_path, 1) as stage:
        look_at(stage)
        [worker] = stage.cluster.nodes
        wait_for_report(worker)
        order = place()
        event_id = OutboxEvent.objects.get(order_id=order.pk).event_id
        (stage.folder / "faults" / f"{event_id}.effects.0").write_text("hang")
        relay.run_once()
        claimed = ProcessedEvent.objects.filter(event_id=event_id, status="processing")
        wait_until(claimed.exists, seconds=60, what="the task to hang", every=0.1)
        for process in [*worker.container.children(), psutil.Process(worker.container.pid)]:
            process.kill()
        wait_until(
            claimed.filter(lease_expires_at__lt=Now()).exists,
            seconds=60,
            what="the end of the lease",
            every=0.2,
        )
        found, mended = steps("A task that hung")

        run(found, EVENT_ID=event_id)
        with another_worker(stage):
            wait_until_done(order, 1)
            run(mended)


@pytest.mark.usefixtures("no_other_worker")
def test_a_worker_that_waits_for_what_is_away(
    set_up: SetUp, tmp_path: Path, look_at: Callable[[Stage], None]
) -> None:
    database = connection.settings_dict
    with gate() as way:
        url = f"postgresql://{database['USER']}@127.0.0.1:{way.port}/{database['NAME']}"
        with set_up(tmp_path, 1, DATABASE_URL=url) as stage:
            look_at(stage)
            [worker] = stage.cluster.nodes
            wait_for_report(worker)
            order = place()
            way.close()
            relay.run_once()
            wait_for_line(worker, "queue_waiting")
            # So that the moment lasts in which the worker can report, and has not tried again.
            for process in worker.container.children():
                process.suspend()
            way.open()
            found, mended = steps("A worker that waits for what is away")
            waits = WorkerReport.objects.exclude(trouble="")
            wait_until(waits.exists, seconds=60, what="the worker to say so", every=0.2)

            run(found)
            for process in worker.container.children():
                process.resume()
            wait_until_done(order, 1)
            wait_until(
                lambda: not waits.exists(), seconds=60, what="the worker to be well", every=0.2
            )
            run(mended)


@pytest.mark.usefixtures("no_other_worker")
def test_a_release_that_does_not_start(
    set_up: SetUp, tmp_path: Path, look_at: Callable[[Stage], None], settings: Any
) -> None:
    with set_up(tmp_path, 1) as stage:
        look_at(stage)
        right = stage.queues.url
        wrong = {"ORDER_EVENTS_QUEUE_URL": f"{right}-of-another-name"}
        new = start_worker("new", stage.app, stage.environment | wrong, stage.folder)
        with pytest.raises(ProgramError, match=r"ended with status 1\n[\s\S]*cannot be read"):
            new.ready()
        new.teardown()
        found, mended = steps("A release that does not start")

        settings.ORDER_EVENTS_QUEUE_URL = wrong["ORDER_EVENTS_QUEUE_URL"]
        run(found)
        settings.ORDER_EVENTS_QUEUE_URL = right
        run(mended)
        with another_worker(stage):
            order = place()
            wait_until_done(order, 1)
