"""Every form of the staff is read by a Django form: what cannot be meant is told on the page."""

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.test import Client

from skincare.operations.forms import LONGEST_REASON, MOST_MESSAGES
from tests.conftest import QueuePair

pytestmark = pytest.mark.django_db

PROJECT = Path(__file__).parents[3]
NO_ORDER = UUID(int=1)
TOO_LONG = {"reason": "x" * (LONGEST_REASON + 1), "action": "dismiss"}


@pytest.fixture(autouse=True)
def queues(queue_pair: QueuePair, sqs_server: str, settings: Any) -> None:
    settings.ORDER_EVENTS_QUEUE_URL = queue_pair.url
    settings.SQS_ENDPOINT_URL = sqs_server


def test_no_view_reads_a_form_by_itself() -> None:
    views = [*PROJECT.glob("skincare/operations/*.py"), *PROJECT.glob("*s/admin.py")]

    assert len(views) > 10
    for view in views:
        assert not re.search(r"request\.POST[.\[]", view.read_text()), view.name


@pytest.mark.parametrize(
    ("path", "fields", "told"),
    [
        ("/admin/operations/events/evt-1/skip/", TOO_LONG, "reason: "),
        ("/admin/operations/events/evt-1/put-back/", {"force": "y" * 9}, "force: "),
        (f"/admin/operations/held/orders/{NO_ORDER}/", TOO_LONG, None),
        ("/admin/operations/held/notifications/1/", {"order": "x" * 65}, "order: "),
        (f"/admin/operations/orders/{NO_ORDER}/shipping/", {"tracking_number": "x" * 65}, "track"),
        ("/admin/operations/goods/", {"sku": "x" * 41, "pieces": "1"}, "sku: "),
        ("/admin/operations/dead-letters/act/", {"q": "x" * 1_001, "action": "discard"}, "q: "),
        (
            "/admin/operations/dead-letters/act/",
            {"message": ["x"] * (MOST_MESSAGES - 1) + ["y" * 129]},
            "message: ",
        ),
    ],
)
def test_what_is_too_long_is_told_and_nothing_is_done(
    path: str, fields: dict[str, Any], told: str | None, admin_client: Client
) -> None:
    answer = admin_client.post(path, fields)

    if told is None:  # there is no such order to decide on
        assert answer.status_code == 404
    else:
        assert answer.status_code == 302
        [message] = [str(one) for one in get_messages(answer.wsgi_request)]
        assert message.startswith(f"Nothing was done. {told}")
    assert not LogEntry.objects.exists()


def test_a_filter_that_cannot_be_meant_is_told_too(admin_client: Client) -> None:
    answer = admin_client.get("/admin/operations/dead-letters/", {"type": "x" * 65}, follow=True)

    assert answer.status_code == 200
    assert "type: Ensure this value has at most 64 characters" in answer.content.decode()
