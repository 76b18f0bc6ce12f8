"""What is wrong is said in the same sentences by the page, the command and its JSON."""

import html
import json
import os
import re
import time
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from celery.worker import state
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from orders.models import Order
from skincare.events.models import OutboxEvent
from skincare.events.outbox import publish
from skincare.local.deadline import wait_until
from skincare.operations import worker_reports
from skincare.operations.models import WorkerReport
from skincare.operations.situation import situation
from skincare.operations.worker_reports import FORGOTTEN_AFTER, Reporter
from skincare.sqs import SQSPolicy
from tests.integration.events.event_documents import new_event
from tests.integration.operations.conftest import Letters, as_bare, failed

pytestmark = pytest.mark.django_db


def sentences() -> list[str]:
    return [str(one) for one in situation().warnings]


def without_ages(text: str) -> str:
    return re.sub(r"\d+ (s|min)\b", "…", text)


def status(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("status", *arguments, stdout=out)
    except CommandError as error:
        return error.returncode, out.getvalue()
    return 0, out.getvalue()


def a_worker(
    *, silent_seconds: float = 0, started_seconds: float = 3600, **values: Any
) -> WorkerReport:
    now = timezone.now()
    return WorkerReport.objects.create(
        host=values.pop("host", "worker-1"),
        pid=7,
        started_at=now - timedelta(seconds=started_seconds),
        seen_at=now - timedelta(seconds=silent_seconds),
        **values,
    )


def waiting(letters: Letters, *, seconds: float) -> None:
    """An event that our outbox sent so long ago and no worker has claimed."""
    event = new_event()
    with transaction.atomic():
        publish(event)
    OutboxEvent.objects.filter(event_id=event.event_id).update(
        sent_at=timezone.now() - timedelta(seconds=seconds)
    )
    letters.client.send_message(QueueUrl=letters.pair.url, MessageBody=as_bare(event))


def test_nothing_is_stuck(letters: Letters) -> None:
    a_worker()

    assert sentences() == []
    code, printed = status()
    assert (code, "Nothing is stuck." in printed) == (0, True)


def test_an_event_may_wait_up_to_the_limit(letters: Letters, settings: Any) -> None:
    a_worker()
    waiting(letters, seconds=settings.OLDEST_EVENT_WARNING_SECONDS - 30)

    assert sentences() == []


def test_an_event_that_waits_longer_is_said_and_fails_the_command(letters: Letters) -> None:
    a_worker()
    waiting(letters, seconds=300)

    [sentence] = sentences()

    assert sentence.startswith("The oldest event in ")
    assert "has waited 5 min for a worker; more than 2 min is too long." in sentence
    assert status()[0] == 1


def test_a_worker_that_was_replaced_is_not_missed_any_more(letters: Letters) -> None:
    a_worker(silent_seconds=300, host="killed")
    a_worker(host="was there before")
    assert len(sentences()) == 1

    a_worker(host="successor", started_seconds=60)
    assert sentences() == []

    a_worker(silent_seconds=200, host="hangs too")
    assert len(sentences()) == 1, "one new worker takes one place"


def test_a_worker_that_is_silent_is_said_even_where_nothing_waits(letters: Letters) -> None:
    a_worker(silent_seconds=300)

    assert sentences() == [
        "Worker worker-1 (7) gave its last sign of life 5 min ago: "
        "it hangs, or died without a word."
    ]


def test_messages_without_any_living_worker_are_said(letters: Letters) -> None:
    letters.client.send_message(QueueUrl=letters.pair.url, MessageBody="waits")

    assert sentences() == ["1 message waiting, and no worker gives a sign of life."]


def test_a_worker_says_itself_what_is_wrong(letters: Letters) -> None:
    a_worker(trouble="queue q denies deletes: the role lacks sqs:DeleteMessage")

    assert sentences() == [
        "Worker worker-1 (7) is not well: queue q denies deletes: the role lacks sqs:DeleteMessage."
    ]


def test_page_command_and_json_say_the_same(letters: Letters) -> None:
    a_worker(silent_seconds=100)
    failed(new_event())
    letters.put(["poison"])
    waiting(letters, seconds=500)
    expected = sentences()
    assert len(expected) >= 5
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("ayu"))

    page = html.unescape(client.get(reverse("operations:overview")).content.decode())
    code, printed = status()
    json_code, document = status("--json")

    for sentence in expected:
        assert without_ages(sentence) in without_ages(page)
        assert f"! {without_ages(sentence)}" in without_ages(printed)
    told = [without_ages(one["text"]) for one in json.loads(document)["warnings"]]
    assert told == [without_ages(one) for one in expected]
    assert (code, json_code) == (1, 1)


def test_every_red_sentence_leads_to_what_it_speaks_of(letters: Letters) -> None:
    failed(new_event())
    letters.put(["poison"])
    a_worker(silent_seconds=100)
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("ayu"))

    found = situation().warnings

    assert len(found) == 3
    for one in found:
        assert client.get(one.url).status_code == 200, one


def test_what_waits_for_a_person_is_in_all_three(letters: Letters) -> None:
    Order.objects.create(
        id=uuid4(), number="SKN-20261111-AAAAAA", email="a@b.example", total_rupiah=1
    )
    told = json.loads(status("--json")[1])

    assert set(told["waiting_for_a_person"]) == {
        "held payment",
        "unmatched notification",
        "unreadable notification",
        "held order",
        "refund",
    }


@pytest.mark.django_db(transaction=True)
def test_a_reporter_writes_its_row_and_takes_it_away(letters: Letters) -> None:
    a_worker(host="gone", silent_seconds=FORGOTTEN_AFTER.total_seconds() + 1)
    reporter = Reporter(processes=5)

    reporter.report()
    reporter.report()

    report = WorkerReport.objects.exclude(host="gone").get()
    assert (report.processes, report.state, report.trouble, report.doing) == (5, "running", "", [])
    assert (timezone.now() - report.seen_at).total_seconds() < 30

    reporter.start()
    reporter.stop()
    assert not WorkerReport.objects.exists(), "its own, and that of one which ended long ago"


class ChangingRequest:
    """What a report meets where the event loop changes the running tasks while it reads them."""

    id = "event-1"
    time_start = None
    reads = 0

    @property
    def name(self) -> str:
        self.reads += 1
        if self.reads == 1:
            raise RuntimeError("Set changed size during iteration")
        return "orders.order_confirmed"


@pytest.mark.django_db(transaction=True)
def test_a_report_that_fails_is_followed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_reports, "INTERVAL", 0.1)
    running = ChangingRequest()
    state.active_requests.add(running)
    reporter = Reporter(processes=5)
    reporter.start()
    try:
        wait_until(WorkerReport.objects.exists, seconds=10, what="the second report")
        assert WorkerReport.objects.get().doing[0]["event_id"] == "event-1"
    finally:
        reporter.stop()
        state.active_requests.discard(running)


@pytest.mark.django_db(transaction=True)
def test_a_report_says_what_a_worker_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads the health file of its own process, whoever else works on this host."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("SQS_HEALTH_FILE", raising=False)
    queue = {
        "unanswered_since": None,
        "deletes_denied": False,
        "waiting_for": "Midtrans",
        "waiting_since": "2026-03-01T10:00:00+00:00",
    }
    health = {"pid": os.getpid(), "last_tick": time.monotonic(), "queues": {"orders": queue}}
    (tmp_path / f"skincare-worker-health.{os.getpid()}.json").write_text(json.dumps(health))
    with override_settings(SQS_POLICY=SQSPolicy()):
        Reporter(processes=5).report()

    assert WorkerReport.objects.get().trouble == (
        "queue orders is waiting for Midtrans since 2026-03-01T10:00:00+00:00"
    )
