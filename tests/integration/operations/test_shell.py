"""The dead-letter queue from `manage.py shell`."""

import pytest
from django.contrib.admin.models import LogEntry

from orders.models import Order
from payments.models import Payment
from payments.replay import (
    NothingChosen,
    dlq_discard,
    dlq_list,
    dlq_redrive,
    dlq_show,
    show,
)
from skincare.events.exceptions import InvalidDuration
from skincare.events.models import OutboxEvent
from skincare.events.schema import parse_event
from tests.integration.events.event_documents import new_event
from tests.integration.operations.conftest import Letters, as_bare, failed
from tests.integration.payments.gateways import an_order, published

pytestmark = pytest.mark.django_db


def test_a_letter_comes_with_its_order_and_payment(letters: Letters) -> None:
    [row] = published(an_order("sandbox"))
    letters.put([as_bare(failed(parse_event(row.payload), "TimeoutError: mail")), "poison"])

    found = {one.letter.event_id: one for one in dlq_list()}

    ours, poison = found[row.event_id], found[""]
    assert ours.order == Order.objects.get()
    assert ours.payment == Payment.objects.get()
    assert repr(ours) == (
        f"{ours.letter.message_id}  payment.processed {row.event_id}  "
        f"failed once: TimeoutError: mail; order {ours.order} is pending; payment is settled"
    )
    assert (poison.order, poison.payment) == (None, None)
    assert "poison" not in repr(poison.letter)  # a body can hold anything
    for name in (row.event_id, ours.letter.message_id):
        assert [repr(one) for one in dlq_show(name)] == [repr(ours)]
    assert dlq_show("never") == []


def test_filters_are_those_of_the_command(letters: Letters) -> None:
    wanted = failed(new_event(event_type="payment.failed"), "TimeoutError: mail")
    letters.put(map(as_bare, [wanted, failed(new_event()), new_event()]))

    for filters in (
        {"event_type": "payment.failed"},
        {"error": "timeout", "since": "1h"},
        {"error": "timeout", "state": "failed"},
    ):
        assert [one.letter.event for one in dlq_list(**filters)] == [wanted]
    with pytest.raises(ValueError, match="no-such-state"):
        dlq_list(state="no-such-state")
    with pytest.raises(InvalidDuration):
        dlq_list(since="yesterday")


def test_redriving_and_discarding_need_a_choice(letters: Letters) -> None:
    letters.put([as_bare(new_event())])

    with pytest.raises(NothingChosen):
        dlq_redrive()
    with pytest.raises(NothingChosen):
        dlq_discard("a test of ours")
    with pytest.raises(NothingChosen):
        dlq_redrive(everything=True, state="never-seen")
    assert letters.visible() == 1


def test_redrive_then_discard(letters: Letters) -> None:
    event = new_event()
    letters.put([as_bare(event), "poison"])

    dry = dlq_redrive(everything=True, dry_run=True)
    assert repr(dry) in (
        "Report(dry_run=True, looked_at=2, counts={'redriven': 1, 'not an event': 1})",
        "Report(dry_run=True, looked_at=2, counts={'not an event': 1, 'redriven': 1})",
    )
    assert not OutboxEvent.objects.exists()

    dlq_redrive(everything=True)
    assert OutboxEvent.objects.get().event_id == event.event_id
    [poison] = dlq_list()
    dlq_discard("a test of ours", message_id=poison.letter.message_id)
    assert letters.visible() == 0
    assert LogEntry.objects.count() == 2
    assert show(event.event_id).status == "not sent yet"
