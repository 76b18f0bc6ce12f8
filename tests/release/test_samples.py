"""What every release has sent and stored is still read, and is still the same event."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from orders.idempotency import body_hash, scope_of
from payments.providers import gateways, provider
from skincare.events.claim import Conflict, Duplicate, claim
from skincare.events.models import ProcessedEvent
from skincare.events.routing import ORDER_TASK, PAYMENT_TASK
from skincare.events.schema import EVENT_TYPES, new_event_id, parse_event, payload_hash
from skincare.sqs.decoder import decode

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.json"))


def recorded(kind: str) -> list[Any]:
    return [
        pytest.param(sample, id=f"{file.stem}-{number}")
        for file in SAMPLES
        for number, sample in enumerate(json.loads(file.read_text()).get(kind, []))
    ]


def test_there_is_a_sample_of_the_release_before_this_one() -> None:
    from tests.release.previous import COMMIT

    assert COMMIT[:7] in {file.stem for file in SAMPLES}


def test_each_type_of_event_and_each_stored_hash_has_a_sample() -> None:
    newest: dict[str, list[dict[str, Any]]] = {}
    for file in SAMPLES:
        for kind, samples in json.loads(file.read_text()).items():
            newest.setdefault(kind, []).extend(samples)

    assert {e["document"]["event_type"] for e in newest["events"]} == set(EVENT_TYPES)
    assert {n["provider"] for n in newest["notifications"]} == {g.name for g in gateways()}
    assert min(len(newest[kind]) for kind in ("guests", "checkouts", "event_ids")) > 0


@pytest.mark.parametrize("sample", recorded("events"))
def test_a_message_of_any_release_is_read_as_the_call_that_it_was(sample: dict[str, Any]) -> None:
    call = decode(sample["message"]["Body"], None)

    assert call.task in (ORDER_TASK, PAYMENT_TASK)
    assert call.task_id == sample["document"]["event_id"]
    assert parse_event(call.args[0]) == parse_event(sample["document"])


@pytest.mark.parametrize("sample", recorded("events"))
def test_an_event_of_any_release_has_the_hash_that_was_stored(sample: dict[str, Any]) -> None:
    assert payload_hash(parse_event(sample["document"])) == sample["payload_hash"]


@pytest.mark.django_db
@pytest.mark.parametrize("sample", recorded("events"))
def test_a_repeat_of_what_any_release_finished_is_a_duplicate(sample: dict[str, Any]) -> None:
    document = sample["document"]
    finished = {name: document[name] for name in ("event_id", "event_type", "order_id")}
    ProcessedEvent.objects.create(
        **finished,
        payment_id=document["payment_id"],
        payload=document,
        payload_hash=sample["payload_hash"],
        status=ProcessedEvent.Status.DONE,
        created_at=document["created_at"],
        finished_at=timezone.now(),
    )

    repeat = claim(parse_event(document), worker="now", receive_count=2)
    another = claim(parse_event({**document, "amount_rupiah": 1}), worker="now", receive_count=1)

    assert isinstance(repeat, Duplicate)
    assert isinstance(another, Conflict)


@pytest.mark.parametrize("sample", recorded("checkouts"))
def test_a_checkout_that_is_tried_again_on_this_release_is_the_same(sample: dict[str, Any]) -> None:
    assert body_hash(sample["body"]) == sample["body_hash"]


@pytest.mark.parametrize("sample", recorded("guests"))
def test_a_guests_key_of_any_release_is_found_again(sample: dict[str, Any]) -> None:
    assert scope_of("guest", sample["email"]) == sample["scope"]


@pytest.mark.parametrize("sample", recorded("notifications"))
def test_a_notification_that_a_gateway_repeats_is_the_one_that_any_release_stored(
    sample: dict[str, Any],
) -> None:
    gateway = provider(sample["provider"])

    assert gateway.parse(sample["document"]).identity == sample["identity"]


@pytest.mark.parametrize("sample", recorded("event_ids"))
def test_a_cause_has_the_event_id_that_it_had_at_any_release(sample: dict[str, Any]) -> None:
    assert new_event_id(*sample["parts"]) == sample["event_id"]
