"""`manage.py event`: the history of one event, and what a person does with it."""

import json
import re
from io import StringIO

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from orders.models import Order
from skincare.events.consumer import EventOutcome, process
from skincare.events.exceptions import LostClaim
from skincare.events.models import OutboxEvent, ProcessedEvent
from tests.integration.events.event_documents import new_event
from tests.integration.operations.conftest import claimed, done, failed
from tests.integration.payments.gateways import an_order, consume, published

pytestmark = pytest.mark.django_db


def event(*args: str) -> tuple[int, str]:
    """Run the command; return its exit code, and what it printed or refused with."""
    out = StringIO()
    try:
        call_command("event", *args, stdout=out, stderr=StringIO())
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


@pytest.fixture
def paid() -> OutboxEvent:
    """The `payment.processed` of a sandbox order, sent and processed."""
    [row] = published(an_order("sandbox"))
    OutboxEvent.objects.filter(pk=row.pk).update(sent_at=timezone.now(), send_attempts=1)
    consume(row)
    return row


def test_show_tells_the_whole_story(paid: OutboxEvent) -> None:
    code, printed = event("show", paid.event_id)

    assert code == 0
    assert printed.startswith(f"payment.processed {paid.event_id}: done")
    told = re.findall(r"^  \S+ \S+  (.+?)(?:  |$)", printed, re.M)
    assert told == [
        "created",
        "published",
        "sent to the queue",
        "claimed",
        "stock of " + told[4].split()[2] + " sold",
        "order pending → paid",
        "effects done",
        "done",
    ]
    order = Order.objects.get()
    assert printed.splitlines()[-2:] == [
        f"order: {order.number} is paid, Rp150.000",
        f"payment: {order.payments.get()} is settled, Rp150.000",
    ]


def test_show_as_json(paid: OutboxEvent) -> None:
    code, printed = event("show", paid.event_id, "--json")

    document = json.loads(printed)
    assert code == 0
    assert document["event"] == paid.payload
    assert document["status"] == "done"
    assert document["order"]["status"] == "paid"
    assert document["payment"]["status"] == "settled"
    assert [one["at"] for one in document["timeline"]] == sorted(
        one["at"] for one in document["timeline"]
    )


def test_an_event_that_was_only_published() -> None:
    [row] = published(an_order("sandbox"))
    assert f"payment.processed {row.event_id}: not sent yet" in event("show", row.event_id)[1]


def test_actions_are_part_of_the_story() -> None:
    lost = failed(new_event())
    event("replay", lost.event_id, "--actor", "root@web")

    _, printed = event("show", lost.event_id)

    assert "failed" in printed
    assert "ValueError: no such payment" in printed
    assert "by hand: manage.py" in printed
    assert "by: root@web" in printed


@pytest.mark.parametrize("action", ["show", "replay"])
def test_an_unknown_event(action: str) -> None:
    assert event(action, "never-heard-of") == (1, "UnknownEvent: never-heard-of")


def test_replay_puts_back_what_failed_and_refuses_what_is_done() -> None:
    lost, finished = failed(new_event()), done(new_event())

    code, printed = event("replay", lost.event_id)
    assert (code, printed.strip()) == (
        0,
        f"payment.processed {lost.event_id}: effects and email happen now",
    )
    code, refusal = event("replay", finished.event_id)
    assert code == 1
    assert "force=True would repeat it" in refusal
    assert event("replay", finished.event_id, "--force")[0] == 0
    assert OutboxEvent.objects.filter(sent_at=None).count() == 2
    assert LogEntry.objects.count() == 2


def test_a_skipped_event_is_not_processed_any_more() -> None:
    lost = failed(new_event())

    code, _ = event("skip", lost.event_id, "--reason", "refunded by hand")

    assert code == 0
    row = ProcessedEvent.objects.get()
    assert (row.status, row.last_error) == ("skipped", "skipped by hand: refunded by hand")
    assert "refunded by hand" in LogEntry.objects.get().change_message
    assert process(lost.document(), receive_count=6, worker="worker-2") is EventOutcome.DUPLICATE


def test_what_cannot_be_skipped() -> None:
    held, finished = new_event(), done(new_event())
    claimed(held)

    assert event("skip", held.event_id, "--reason", "x")[1].startswith("StillInProgress: worker-1")
    assert event("skip", finished.event_id, "--reason", "x")[1].startswith("AlreadyFinished: ")
    assert event("skip", "never", "--reason", "x") == (1, "UnknownEvent: never")
    assert event("skip", held.event_id, "--reason", " ")[1].startswith("ReasonMissing: ")
    assert not LogEntry.objects.exists()


def test_several_events_are_skipped_and_what_cannot_be_is_told() -> None:
    first, second, held = failed(new_event()), failed(new_event()), new_event()
    claimed(held)
    ids = [one.event_id for one in (first, held, second)]

    code, told = event("skip", *ids, "--reason", "settled by hand", "--yes")

    assert (code, told.startswith("StillInProgress: worker-1")) == (1, True)
    skipped = ProcessedEvent.objects.filter(status="skipped").values_list("event_id", flat=True)
    assert set(skipped) == {first.event_id, second.event_id}
    assert LogEntry.objects.count() == 2


def test_a_filter_skips_what_it_matches_and_is_not_finished() -> None:
    lost = [failed(new_event(event_type="payment.failed"), "OrderNotFound: x") for _ in range(2)]
    other, finished = failed(new_event(), "TimeoutError"), done(new_event())
    wanted = ("skip", "--status", "failed", "--error", "NotFound", "--reason", "lost")

    code, told = event(*wanted, "--dry-run")
    assert code == 0
    assert sorted(told.splitlines()) == sorted(f"{one.event_id} would be skipped" for one in lost)
    assert not LogEntry.objects.exists()
    assert event(*wanted)[0] == 2  # nobody can be asked here
    assert not LogEntry.objects.exists()

    code, told = event(*wanted, "--yes")

    assert code == 0
    statuses = dict(ProcessedEvent.objects.values_list("event_id", "status"))
    assert statuses == dict.fromkeys((one.event_id for one in lost), "skipped") | {
        other.event_id: "failed",
        finished.event_id: "done",
    }
    assert event(*wanted, "--yes") == (1, "No event matches.")


def test_events_are_named_or_filtered() -> None:
    lost = failed(new_event())

    for arguments in ((), (lost.event_id, "--status", "failed")):
        code, told = event("skip", *arguments, "--reason", "x", "--yes")
        assert (code, told) == (2, "Say which events: by their ids, or by a filter.")
    with pytest.raises(CommandError):
        call_command("event", "skip", "--status", "done", "--reason", "x", "--yes")


def test_a_worker_that_comes_back_after_the_skip_commits_nothing() -> None:
    lost = new_event()
    dead = claimed(lost)
    ProcessedEvent.objects.update(lease_expires_at=timezone.now())

    assert event("skip", lost.event_id, "--reason", "x")[0] == 0

    with pytest.raises(LostClaim):
        dead.commit_effects()
    assert ProcessedEvent.objects.get().status == "skipped"


def test_list_filters() -> None:
    lost = failed(new_event(event_type="payment.failed"), "TimeoutError: mail\nsecond line")
    done(new_event())

    code, printed = event("list", "--status", "failed", "--since", "1h", "--error", "timeout")

    assert code == 0
    [line] = printed.splitlines()
    assert line.endswith(f"payment.failed {lost.event_id}  failed, try 1  TimeoutError: mail")
    assert len(event("list")[1].splitlines()) == 2
    assert json.loads(event("list", "--order", lost.order_id, "--json")[1])["status"] == "failed"
    assert event("list", "--type", "payment.refunded") == (1, "No event matches.")
