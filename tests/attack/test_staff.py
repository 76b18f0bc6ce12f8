"""The staff's addresses and forms with anything in them, by each role: a page or a 4xx."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from payments.models import Hold, PaymentNotification
from payments.money_check import check_money
from skincare.events.models import OutboxEvent
from tests.attack.values import TEXTS, some
from tests.conftest import QueuePair
from tests.integration.payments.gateways import an_order, midtrans_posts
from tests.unit.payments import midtrans_notifications as midtrans

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
    "/admin/operations/payments/{}/refund/",
    "/admin/operations/goods/",
    "/admin/operations/dead-letters/act/",
    "/admin/orders/order/{}/change/",
    "/admin/payments/payment/{}/change/",
)
FIELDS = (
    *("reason", "order", "action", "message", "force", "hold", "decision", "confirmed", "scope"),
    *("type", "state", "since", "group", "error", "q", "page", "sort"),
    *("shipped_at", "tracking_number", "delivery", "sku", "pieces", "amount", "request"),
)
ACTIONS = (
    {"action": "ship"},
    {"action": "take_back"},
    {"action": "discard", "confirmed": "yes", "scope": "selected"},
    {"action": "redrive", "confirmed": "yes", "scope": "selected"},
    {"action": "match"},
    {"pieces": "1", "sku": "SRM-VITC-30"},
)
#: All that the forms do.
EVERY_ACTION = (
    *("match", "dismiss", "read", "request", "accept", "cancel", "ship", "take_back"),
    *("ask", "agree", "withdraw", "tell", "confirm", "discard", "redrive", ""),
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


def lists_of_the_admin() -> Iterator[tuple[str, list[str]]]:
    """Each list, with the parameters of its filters and links."""
    for model, shown in admin.site._registry.items():
        filters: Sequence[Any] = shown.list_filter
        names = [getattr(one, "parameter_name", one) for one in filters]
        fields = [name if isinstance(name, str) else name[0] for name in names]
        lookups = [f"{name}{how}" for name in fields for how in ("", "__exact", "__isempty")]
        page = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        yield page, [*lookups, "q", "o", "p", "payment__id__exact", "order__id__exact", "pk__in"]


def test_every_list_of_the_admin_with_anything_in_its_filters(staff: Client) -> None:
    for turn, (page, names) in enumerate(lists_of_the_admin()):
        for name, text in itertools.product(names, some(TEXTS, turn=turn)):
            answer = staff.get(f"{page}?{name}={escaped(text)}")
            assert answer.status_code < 500, (page, name, text)


def test_every_action_on_what_is_there_with_anything_in_its_fields(staff: Client) -> None:
    order = an_order()
    for reference, amount in ((str(order.pk), "150071.00"), (str(uuid4()), "150000.00")):
        document = midtrans.card(order_id=reference, transaction_id=reference)
        midtrans_posts({**document, "gross_amount": amount})
    hold = Hold.objects.get()
    there = {
        "payments": hold.payment_id,
        "orders": order.pk,
        "notifications": PaymentNotification.objects.get(outcome="unmatched").pk,
        "events": OutboxEvent.objects.filter(order_id=str(order.pk))[0].event_id,
    }
    meant = {"reason": "r", "hold": str(hold.pk), "sku": order.lines.get().sku}
    for (form, action), text in zip(
        itertools.product(FORMS, EVERY_ACTION), itertools.cycle(TEXTS), strict=False
    ):
        [known] = [pk for name, pk in there.items() if f"/{name}/" in form] or [""]
        path = form.format(known)
        fields = dict.fromkeys(FIELDS, text.encode(errors="replace").decode())
        for sent in (fields, fields | meant, meant | {"request": "9" * 18, "pieces": "1000000"}):
            answer = staff.post(path, sent | {"action": action})
            assert answer.status_code < 500, (path, action, sent)
        assert staff.get(path).status_code < 500, path
    assert [str(one) for one in check_money()] == []
