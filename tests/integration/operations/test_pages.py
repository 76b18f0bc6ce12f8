"""The operator's pages: who may open them, what they show, what their buttons do."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from skincare.events.claim import Claim, claim
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.schema import Event
from skincare.operations.groups import FINANCE, OPERATOR
from tests.conftest import QueuePair
from tests.integration.events.event_documents import new_event

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def queues(queue_pair: QueuePair, sqs_server: str, settings: Any) -> QueuePair:
    settings.ORDER_EVENTS_QUEUE_URL = queue_pair.url
    settings.SQS_ENDPOINT_URL = sqs_server
    return queue_pair


LogIn = Callable[..., Client]


@pytest.fixture
def log_in() -> LogIn:
    def logged_in(*groups: str, name: str = "sari") -> Client:
        user = get_user_model().objects.create_user(name, password="x", is_staff=True)
        user.groups.set(Group.objects.filter(name__in=groups))
        assert user.groups.count() == len(groups)
        client = Client()
        client.force_login(user)
        return client

    return logged_in


def failed_event(error: str = "ValueError: no such product") -> Event:
    event = new_event()
    held = claim(event, worker="w1", receive_count=5)
    assert isinstance(held, Claim)
    held.fail(error)
    return event


PAGES = ["operations:overview", "operations:dead_letters", "operations:held"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_for_staff_with_permission_only(page: str, log_in: LogIn) -> None:
    assert Client().get(reverse(page)).status_code == 302  # to the login
    assert log_in().get(reverse(page)).status_code == 403
    assert log_in(OPERATOR, name="budi").get(reverse(page)).status_code == 200


def test_somebody_without_permission_sees_no_link_to_them(log_in: LogIn) -> None:
    page = log_in().get(reverse("admin:index")).content.decode()

    assert reverse("operations:overview") not in page


def test_an_empty_shop_says_that_nothing_is_stuck(log_in: LogIn) -> None:
    page = log_in(OPERATOR).get(reverse("operations:overview")).content.decode()

    assert "Nothing is stuck." in page
    assert "No event ended in this time." in page


def test_the_overview_names_what_is_stuck_and_why(
    log_in: LogIn, queues: QueuePair, sqs_client: "SQSClient"
) -> None:
    event = failed_event()
    sqs_client.send_message(QueueUrl=queues.dlq_url, MessageBody="not json")

    page = log_in(OPERATOR).get(reverse("operations:overview")).content.decode()

    assert "1 message in " in page
    assert "1 event failed at the last try." in page
    assert "ValueError: no such product" in page
    assert reverse("operations:event", args=[event.event_id]) in page


def test_the_overview_comes_up_without_sqs(log_in: LogIn, settings: Any) -> None:
    settings.SQS_ENDPOINT_URL = "http://127.0.0.1:1"

    page = log_in(OPERATOR).get(reverse("operations:overview")).content.decode()

    assert "SQS gives no figures" in page
    assert "Events per minute" in page


def test_a_dead_letter_is_found_put_back_and_audited(
    log_in: LogIn, queues: QueuePair, sqs_client: "SQSClient"
) -> None:
    event = failed_event()
    sqs_client.send_message(QueueUrl=queues.dlq_url, MessageBody=json.dumps(event.document()))
    sqs_client.send_message(QueueUrl=queues.dlq_url, MessageBody="not json")
    operator = log_in(OPERATOR)

    listed = operator.get(reverse("operations:dead_letters"), {"error": "no such product"})
    letters = listed.context["dead_letters"]
    assert [letter.event_id for letter in letters] == [event.event_id]
    form = {"action": "redrive", "scope": "selected", "message": letters[0].message_id}

    shown = operator.post(reverse("operations:dead_letters_act"), form)
    assert [(k.value, n) for k, n in shown.context["counts"]] == [("redriven", 1)]
    assert OutboxEvent.objects.count() == 0  # a dry run

    done = operator.post(reverse("operations:dead_letters_act"), {**form, "confirmed": "yes"})
    assert done.status_code == 302
    assert OutboxEvent.objects.get().event_id == event.event_id
    assert LogEntry.objects.filter(user__username="sari").count() == 1
    left = operator.get(reverse("operations:dead_letters")).context["dead_letters"]
    assert [letter.kind for letter in left] == ["raw"]


def test_a_discard_needs_a_reason_and_the_permission(
    log_in: LogIn, queues: QueuePair, sqs_client: "SQSClient"
) -> None:
    sqs_client.send_message(QueueUrl=queues.dlq_url, MessageBody="not json")
    form = {"action": "discard", "scope": "filter", "confirmed": "yes"}
    act = reverse("operations:dead_letters_act")

    assert log_in(FINANCE, name="dewi").post(act, form).status_code == 403
    operator = log_in(OPERATOR)
    operator.post(act, form)
    assert len(operator.get(reverse("operations:dead_letters")).context["dead_letters"]) == 1
    operator.post(act, {**form, "reason": "a test message"})
    assert operator.get(reverse("operations:dead_letters")).context["dead_letters"] == []


def test_a_letters_text_is_shown_escaped(
    log_in: LogIn, queues: QueuePair, sqs_client: "SQSClient"
) -> None:
    sqs_client.send_message(QueueUrl=queues.dlq_url, MessageBody="<script>alert(1)</script>")
    operator = log_in(OPERATOR)
    [letter] = operator.get(reverse("operations:dead_letters")).context["dead_letters"]

    page = operator.get(reverse("operations:dead_letter", args=[letter.message_id]))

    assert "<script>alert" not in page.content.decode()
    assert "&lt;script&gt;alert" in page.content.decode()


def test_a_failed_event_is_retried_from_its_page(log_in: LogIn) -> None:
    event = failed_event()
    operator = log_in(OPERATOR)

    page = operator.get(reverse("operations:event", args=[event.event_id])).content.decode()
    assert "ValueError: no such product" in page
    operator.post(reverse("operations:replay", args=[event.event_id]))

    assert OutboxEvent.objects.get().event_id == event.event_id
    assert LogEntry.objects.count() == 1


def test_a_finished_event_is_repeated_only_on_purpose(log_in: LogIn) -> None:
    event = new_event()
    held = claim(event, worker="w1")
    assert isinstance(held, Claim)
    held.finish()
    operator = log_in(OPERATOR)
    put_back = reverse("operations:replay", args=[event.event_id])

    operator.post(put_back)
    assert OutboxEvent.objects.count() == 0
    operator.post(put_back, {"force": "yes"})
    assert OutboxEvent.objects.count() == 1


def test_an_event_is_skipped_with_a_reason(log_in: LogIn) -> None:
    event = failed_event()
    operator = log_in(OPERATOR)
    skip = reverse("operations:skip", args=[event.event_id])

    operator.post(skip)
    assert ProcessedEvent.objects.get().status == "failed"
    operator.post(skip, {"reason": "the buyer was refunded by hand"})
    assert ProcessedEvent.objects.get().status == "skipped"
    assert operator.post(skip, {"reason": "again"}).status_code == 302
    assert LogEntry.objects.count() == 1


def test_finance_cannot_replay_and_operators_cannot_decide_on_money(log_in: LogIn) -> None:
    event = failed_event()
    unknown = "0c9d7be5-6f2d-4f39-93e5-9a0e6a2b9a11"

    finance = log_in(FINANCE, name="dewi")
    put_back = reverse("operations:replay", args=[event.event_id])
    assert finance.post(put_back).status_code == 403
    operator = log_in(OPERATOR)
    payment = reverse("operations:held_payment", args=[unknown])
    assert operator.post(payment, {"action": "dismiss", "reason": "x"}).status_code == 403
    assert operator.get(payment).status_code == 404


def test_a_page_of_an_unknown_event_is_not_found(log_in: LogIn) -> None:
    operator = log_in(OPERATOR)

    assert operator.get(reverse("operations:event", args=["unknown"])).status_code == 404
