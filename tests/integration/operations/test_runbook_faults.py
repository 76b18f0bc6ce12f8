"""Five planted faults, each found and mended with the runbook's own commands, as it prints them."""

import re
import shlex
from dataclasses import dataclass, field
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction
from django.test import Client
from django.utils import timezone

from orders.models import Order, Product
from orders.status import OrderStatus
from payments import paying
from payments.models import Payment
from skincare.events.claim import Claim, claim
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.outbox import publish
from skincare.events.schema import Event
from skincare.local.gateways.actions import GOOD_CARD
from skincare.local.gateways.simulator import Simulator
from skincare.operations.models import WorkerReport
from skincare.sqs.health import waiting
from tests.conftest import QueuePair
from tests.faults.faults import Denied
from tests.faults.proxy import FaultProxy
from tests.integration.events.event_documents import new_event
from tests.integration.operations.conftest import Letters, as_bare
from tests.integration.payments.gateways import an_order

pytestmark = pytest.mark.django_db

RUNBOOK = (Path(__file__).parents[3] / "docs" / "runbook.md").read_text()


@dataclass(frozen=True)
class Step:
    """A command of the runbook, and the lines that it says one will see; "…" is anything."""

    command: str
    lines: list[str] = field(default_factory=list)


def steps(heading: str) -> list[list[Step]]:
    """The commands below this heading, in the blocks in which they stand."""
    section = RUNBOOK.split(f"## {heading}\n")[1].split("\n#")[0]
    blocks = []
    for block in re.findall(r"```console\n(.*?)```", section, re.DOTALL):
        found: list[Step] = []
        for line in block.splitlines():
            if line.startswith("$ python manage.py "):
                found.append(Step(line.removeprefix("$ python manage.py ")))
            else:
                found[-1].lines.append(line)
        blocks.append(found)
    return blocks


def run(block: list[Step], **ids: str) -> None:
    """Type each command of the block; what the runbook says must be among what is printed."""
    for step in block:
        line = step.command
        for name, value in ids.items():
            line = line.replace(name, value)
        name, *arguments = shlex.split(line)
        out = StringIO()
        try:
            call_command(name, *arguments, stdout=out, stderr=StringIO())
        except CommandError as error:
            if error.returncode != 1:
                raise
        for expected in step.lines:
            for name, value in ids.items():
                expected = expected.replace(name, value)
            pattern = ".*".join(re.escape(part.strip()) for part in expected.split("…"))
            assert re.search(pattern, out.getvalue()), f"{line} printed:\n{out.getvalue()}"


@pytest.fixture(autouse=True)
def worker(db: None) -> WorkerReport:
    now = timezone.now()
    return WorkerReport.objects.create(
        host="worker-1", pid=7, started_at=now, seen_at=now, doing=[], processes=5
    )


def test_a_message_that_nobody_can_read(letters: Letters) -> None:
    letters.put(["poison"])
    [block] = steps("A message that nobody can read")
    message = letters.client.receive_message(QueueUrl=letters.pair.dlq_url, VisibilityTimeout=0)

    run(block, MESSAGE_ID=message["Messages"][0]["MessageId"])

    assert letters.visible() == 0


def test_money_that_does_not_fit(letters: Letters) -> None:
    order = an_order("sandbox")
    payment = Payment.objects.get(order=order)
    Payment.objects.filter(pk=payment.pk).update(held_reason="the amount does not fit")
    found, mended = steps("Money that does not fit")

    run(found)
    # The two persons' pages have a browser test of their own.
    Payment.objects.filter(pk=payment.pk).update(held_reason="")
    run(mended)


def test_sqs_denies(sqs_server: str, queue_pair: QueuePair, settings: Any) -> None:
    settings.ORDER_EVENTS_QUEUE_URL = queue_pair.url
    event = new_event()
    with transaction.atomic():
        publish(event)
    OutboxEvent.objects.update(
        send_attempts=3,
        created_at=timezone.now() - timedelta(minutes=5),
        last_error="AccessDenied: not authorized to perform sqs:sendmessage",
    )
    found, mended = steps("SQS denies what it should allow")

    with FaultProxy(sqs_server) as proxy:
        settings.SQS_ENDPOINT_URL = proxy.url
        proxy.inject(Denied(), action="SendMessageBatch")
        run(found)
        proxy.clear()
        OutboxEvent.objects.update(sent_at=timezone.now())  # as the relay does by itself
        run(mended)


def put_off(event: Event) -> None:
    """A worker has done all but the email, which the provider does not take."""
    with transaction.atomic():
        publish(event)
    held = claim(event, worker="worker-1")
    assert isinstance(held, Claim)
    held.commit_effects()
    assert held.put_off("EmailDelayed: ConnectionRefusedError") is not None


def test_the_email_provider_is_down(letters: Letters) -> None:
    event = new_event()
    put_off(event)
    found, by_hand, mended = steps("The email provider is down")

    run(found)
    run(by_hand, EVENT_ID=event.event_id)
    again = claim(event, worker="worker-1")
    assert isinstance(again, Claim)
    again.finish()
    OutboxEvent.objects.update(sent_at=timezone.now())
    run(mended)


def test_a_worker_that_hangs(letters: Letters, worker: WorkerReport) -> None:
    event = new_event()
    with transaction.atomic():
        publish(event)
    OutboxEvent.objects.update(sent_at=timezone.now() - timedelta(minutes=5))
    letters.client.send_message(QueueUrl=letters.pair.url, MessageBody=as_bare(event))
    WorkerReport.objects.update(seen_at=timezone.now() - timedelta(minutes=5))
    found, mended = steps("A worker that hangs")

    run(found)
    # Another worker comes, and does it.
    worker.delete()
    WorkerReport.objects.create(
        host="worker-2", pid=8, started_at=timezone.now(), seen_at=timezone.now()
    )
    held = claim(event, worker="worker-2")
    assert isinstance(held, Claim)
    held.finish()
    letters.client.purge_queue(QueueUrl=letters.pair.url)
    run(mended)


def test_a_task_that_hung(letters: Letters) -> None:
    event = new_event()
    with transaction.atomic():
        publish(event)
    OutboxEvent.objects.update(sent_at=timezone.now())
    assert isinstance(claim(event, worker="worker-1"), Claim)
    ProcessedEvent.objects.update(lease_expires_at=timezone.now() - timedelta(minutes=5))
    found, mended = steps("A task that hung")

    run(found, EVENT_ID=event.event_id)
    # Another worker comes, and does it.
    held = claim(event, worker="worker-2")
    assert isinstance(held, Claim)
    held.finish()
    run(mended)


def test_a_worker_that_waits_for_what_is_away(letters: Letters, worker: WorkerReport) -> None:
    health = {"waiting_for": "PostgreSQL", "waiting_since": "2026-11-30T00:00:00Z", "waiting": 3}
    WorkerReport.objects.update(trouble="; ".join(waiting({"queues": {"orders": health}})))
    found, mended = steps("A worker that waits for what is away")

    run(found)
    WorkerReport.objects.update(trouble="")
    run(mended)


def test_a_queue_without_its_dead_letter_queue(letters: Letters) -> None:
    letters.client.set_queue_attributes(QueueUrl=letters.pair.url, Attributes={"RedrivePolicy": ""})
    [block] = steps("A queue without its dead-letter queue")

    run(block)


def test_stock_that_one_buyer_holds() -> None:
    order = an_order("midtrans")
    Order.objects.update(created_at=timezone.now() - timedelta(hours=2))
    [block] = steps("Stock that one buyer holds")

    run(block)

    assert Order.objects.get(pk=order.pk).status == OrderStatus.EXPIRED
    assert not Product.objects.filter(reserved__gt=0).exists()


def test_many_failed_logins() -> None:
    get_user_model().objects.create_superuser("ayu", password="right")
    for _ in range(8):
        Client().post("/admin/login/", {"username": "ayu", "password": "wrong"})
    right = {"username": "ayu", "password": "right"}
    assert Client().post("/admin/login/", right).status_code == 429
    [block] = steps("Many failed logins")

    run(block)

    assert Client(REMOTE_ADDR="192.0.2.7").post("/admin/login/", right).status_code == 302


def test_a_gateway_is_down(gateways: Simulator, settings: Any) -> None:
    order = an_order("midtrans")
    paying.open_page(order_id=order.pk, wanted="", idempotency_key="k")
    [session] = gateways.midtrans.sessions.values()
    gateways.midtrans.pick(session, "credit_card", card=GOOD_CARD)
    settings.MIDTRANS_API_URL = "http://127.0.0.1:9"
    found, mended = steps("A gateway is down")

    run(found)
    settings.MIDTRANS_API_URL = gateways.midtrans_api_url
    run(mended)


def test_a_release_that_does_not_start(letters: Letters, settings: Any) -> None:
    right = letters.pair.url
    settings.ORDER_EVENTS_QUEUE_URL = f"{right}-of-another-name"
    found, mended = steps("A release that does not start")

    run(found)
    settings.ORDER_EVENTS_QUEUE_URL = right
    run(mended)


def test_no_fault_of_the_runbook_is_left_out() -> None:
    parts = (
        "Five faults, from the symptom to fixed",
        "More faults, by the command that tells them",
    )
    told = [RUNBOOK.split(f"## {part}\n")[1].split("\n## ")[0] for part in parts]
    here = Path(__file__).read_text()

    headings = [re.findall(r"^### (.*)", part, re.MULTILINE) for part in told]
    assert [len(found) for found in headings] == [5, 7]
    for heading in (*headings[0], *headings[1]):
        assert f'steps("{heading}")' in here, heading
