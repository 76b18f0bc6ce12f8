"""The staff's addresses and forms with anything in them, by each role: a page or a 4xx."""

import itertools
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from tests.attack.values import TEXTS, some
from tests.conftest import QueuePair

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.timeout(600)]

ROLES = ("nobody", "operator", "finance", "superuser")
LISTS = (
    "/admin/",
    "/admin/operations/",
    "/admin/operations/dead-letters/",
    "/admin/operations/held/",
    "/admin/orders/order/",
    "/admin/orders/product/",
    "/admin/payments/payment/",
    "/admin/payments/paymentnotification/",
    "/admin/events/outboxevent/",
    "/admin/events/processedevent/",
)
PARAMETERS = (
    *("type", "state", "since", "group", "sort", "page", "scope"),
    *("q", "o", "p", "e", "all", "status__exact", "id", "created_at__gte", "unknown"),
)
FORMS = (
    "/admin/operations/events/{}/skip/",
    "/admin/operations/events/{}/put-back/",
    "/admin/operations/held/notifications/{}/",
    "/admin/operations/held/payments/{}/",
    "/admin/operations/held/orders/{}/",
    "/admin/operations/orders/{}/shipping/",
    "/admin/operations/goods/",
    "/admin/operations/dead-letters/act/",
    "/admin/orders/order/{}/change/",
    "/admin/payments/payment/{}/change/",
)
FIELDS = (
    *("reason", "order", "action", "message", "force", "hold", "decision", "confirmed", "scope"),
    *("type", "state", "since", "group", "error", "q", "page", "sort"),
    *("shipped_at", "tracking_number", "delivery", "sku", "pieces"),
)
ACTIONS = (
    {"action": "ship"},
    {"action": "take_back"},
    {"action": "discard", "confirmed": "yes", "scope": "selected"},
    {"action": "redrive", "confirmed": "yes", "scope": "selected"},
    {"action": "match"},
    {"pieces": "1", "sku": "SRM-VITC-30"},
)


@pytest.fixture(autouse=True)
def queues(queue_pair: QueuePair, sqs_server: str, settings: Any) -> None:
    """Dead letters are looked for in a queue that is there."""
    settings.ORDER_EVENTS_QUEUE_URL = queue_pair.url
    settings.SQS_ENDPOINT_URL = sqs_server


@pytest.fixture(params=ROLES)
def staff(request: pytest.FixtureRequest) -> Client:
    client = Client(raise_request_exception=False)
    if request.param != "nobody":
        person = User.objects.create_user(
            request.param, is_staff=True, is_superuser=request.param == "superuser"
        )
        person.groups.set(Group.objects.filter(name=request.param))
        client.force_login(person)
    return client


def escaped(text: str) -> str:
    return quote(text[:300].encode(errors="surrogatepass"), safe="")


def test_every_list_with_anything_in_its_address(staff: Client) -> None:
    tries = [(page, text) for turn, page in enumerate(LISTS) for text in some(TEXTS, turn=turn)]
    for (page, text), name in zip(tries, itertools.cycle(PARAMETERS), strict=False):
        answer = staff.get(f"{page}?{name}={escaped(text)}")
        assert answer.status_code < 500, (page, name, text)


def test_every_form_with_anything_in_its_address_and_its_fields(staff: Client) -> None:
    tries = [(f, text) for turn, f in enumerate(FORMS) for text in some(TEXTS, turn=turn)]
    for form, text in tries:
        path = form.format(escaped(text))
        words = text.encode(errors="replace").decode()
        fields = dict.fromkeys(FIELDS, words)
        assert staff.get(path).status_code < 500, path
        assert staff.post(path, fields).status_code < 500, path
        for action in ACTIONS:
            assert staff.post(path, fields | action).status_code < 500, (path, action)
    for action in ("match", "dismiss", "request", "accept", "release", *TEXTS[:5]):
        for path in ("/admin/operations/held/notifications/1/", "/admin/login/"):
            assert staff.post(path, {"action": action, "reason": "x"}).status_code < 500
