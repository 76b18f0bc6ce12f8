"""`manage.py dlq` over a dead-letter queue of 1,000 messages of all kinds."""

import json
from collections import Counter
from datetime import timedelta
from io import StringIO
from itertools import cycle, islice

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.routing import PAYMENT_TASK
from tests.faults.poison import poison
from tests.integration.events.event_documents import new_event
from tests.integration.operations.conftest import (
    Letters,
    another,
    as_bare,
    as_celery,
    as_sns,
    claimed,
    done,
    failed,
)

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(300)]


def dlq(*args: str) -> tuple[int, str]:
    """Run the command; return its exit code and what it printed."""
    out = StringIO()
    try:
        call_command("dlq", *args, stdout=out, stderr=StringIO())
    except CommandError as error:
        return error.returncode, out.getvalue()
    return 0, out.getvalue()


def a_thousand() -> list[str]:
    """400 times poison, and 600 events in every form and state."""
    shapes = [shape.body for shape in poison(PAYMENT_TASK)]
    bodies = list(islice(cycle(shapes), 400))
    bodies += [as_celery(done(new_event())) for _ in range(150)]
    bodies += [as_bare(failed(new_event())) for _ in range(150)]
    bodies += [as_sns(new_event()) for _ in range(150)]
    bodies += [as_celery(failed(new_event(event_type="payment.failed"))) for _ in range(50)]
    for _ in range(50):
        event = new_event()
        claimed(event)
        bodies.append(as_celery(event))
    # On a busy machine a thousand letters may take longer than a lease.
    ProcessedEvent.objects.filter(status="processing").update(
        lease_expires_at=timezone.now() + timedelta(hours=1)
    )
    bodies += [as_bare(another(done(new_event()))) for _ in range(50)]
    assert len(bodies) == 1000
    return bodies


@pytest.mark.slow
def test_an_operator_clears_a_thousand_letters(letters: Letters) -> None:
    letters.put(a_thousand())

    # Looking finds each once, and takes none away.
    code, printed = dlq("list", "--json")
    found = [json.loads(line) for line in printed.splitlines()]
    assert code == 0
    assert len({one["message_id"] for one in found}) == len(found) == 1000
    assert Counter(one["state"] for one in found) == {
        "not-an-event": 400,
        "processed": 150,
        "failed": 200,
        "never-seen": 150,
        "in-progress": 50,
        "conflict": 50,
    }
    assert (letters.visible(), letters.hidden()) == (1000, 0)

    # A dry run says what would happen, and does nothing.
    expected = {
        "redriven": 350,
        "already processed": 150,
        "in progress": 50,
        "conflict": 50,
        "not an event": 400,
    }
    code, printed = dlq("redrive", "--all", "--dry-run", "--json")
    assert code == 1
    assert json.loads(printed)["counts"] == expected
    assert letters.visible() == 1000
    assert not OutboxEvent.objects.exists()

    # Redriving puts back what can be done, and leaves the rest.
    code, printed = dlq("redrive", "--all", "--yes", "--json")
    assert code == 1
    assert json.loads(printed)["counts"] == expected
    assert letters.visible() == 650
    assert OutboxEvent.objects.filter(sent_at=None).count() == 350
    assert LogEntry.objects.count() == 350

    # Poison is discarded, by its state.
    poisonous = ("--state", "not-an-event", "--reason", "poison")
    code, printed = dlq("discard", *poisonous, "--yes", "--json")
    assert code == 0
    assert json.loads(printed)["counts"] == {"discarded": 400}
    assert (letters.visible(), letters.hidden()) == (250, 0)
    assert LogEntry.objects.count() == 750
