"""The staff's addresses and forms with anything in them, by each role: a page or a 4xx."""

import itertools
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from tests.attack.values import TEXTS, some

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.timeout(600)]

ROLES = ("nobody", "operator", "finance", "superuser")
LISTS = (
    "/admin/",
    "/admin/operations/",
    "/admin/operations/held/",
    "/admin/orders/order/",
    "/admin/orders/product/",
    "/admin/payments/payment/",
    "/admin/payments/paymentnotification/",
    "/admin/events/outboxevent/",
    "/admin/events/processedevent/",
)
PARAMETERS = ("q", "o", "p", "e", "all", "status__exact", "id", "created_at__gte", "unknown")
FORMS = (
    "/admin/operations/events/{}/skip/",
    "/admin/operations/events/{}/put-back/",
    "/admin/operations/held/notifications/{}/",
    "/admin/operations/held/payments/{}/",
    "/admin/operations/held/orders/{}/",
    "/admin/orders/order/{}/change/",
    "/admin/payments/payment/{}/change/",
)


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
        fields = dict.fromkeys(("reason", "order", "action", "message", "force"), words)
        assert staff.get(path).status_code < 500, path
        assert staff.post(path, fields).status_code < 500, path
    for action in ("match", "dismiss", "request", "accept", "release", *TEXTS[:5]):
        for path in ("/admin/operations/held/notifications/1/", "/admin/login/"):
            assert staff.post(path, {"action": action, "reason": "x"}).status_code < 500
