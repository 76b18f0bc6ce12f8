"""The page for refunds: who may do what on it, and what its forms refuse."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from orders.models import Order
from payments.models import Payment, PaymentRefund, RefundRequest
from payments.refund_sending import send_due
from skincare.local.gateways.simulator import Simulator
from skincare.operations.groups import FINANCE, OPERATOR
from tests.integration.payments.conftest import gateways  # noqa: F401
from tests.integration.payments.gateways import TOTAL
from tests.integration.payments.test_confirmation import held_for, work
from tests.integration.payments.test_refunding import at_the_gateway, paid

pytestmark = pytest.mark.django_db


def log_in(name: str, *groups: str) -> Client:
    user = get_user_model().objects.create_user(name, is_staff=True)
    user.groups.set(Group.objects.filter(name__in=groups))
    client = Client()
    client.force_login(user)
    return client


def page_of(order: Order) -> str:
    return reverse("operations:refund", args=[Payment.objects.get(order=order).pk])


def post(client: Client, order: Order, action: str, **fields: Any) -> str:
    """Send the page's form; return the page that follows."""
    answer = client.post(page_of(order), {"action": action, **fields}, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def sent(order: Order) -> Order:
    """The relay has sent what is due, and a worker has done what follows."""
    RefundRequest.objects.filter(next_try_at__isnull=False).update(next_try_at=timezone.now())
    send_due()
    return work(order)


def test_two_persons_of_finance_give_a_part_back(gateways: Simulator) -> None:  # noqa: F811
    order = paid(gateways, "midtrans")
    dewi, putu = log_in("dewi", FINANCE), log_in("putu", FINANCE)

    page = post(dewi, order, "ask", amount=50_000, reason="one jar was broken")
    request = RefundRequest.objects.get()
    assert "another person has to agree" in page
    assert 'value="agree"' not in page
    assert "Nothing was done" in post(dewi, order, "agree", request=request.pk)
    assert 'value="agree"' in putu.get(page_of(order)).content.decode()
    post(putu, order, "agree", request=request.pk)

    assert (sent(order).status, order.refunded_rupiah) == ("partly_refunded", 50_000)
    assert at_the_gateway(gateways, "midtrans") == 50_000
    assert list(LogEntry.objects.order_by("id").values_list("user__username", flat=True)) == [
        "dewi",
        "putu",
    ]
    # The rest, which the form offers by itself.
    assert 'value="100000"' in dewi.get(page_of(order)).content.decode()


def test_a_transfer_by_hand_is_told_by_one_and_confirmed_by_another(
    gateways: Simulator,  # noqa: F811
) -> None:
    order = paid(gateways, "midtrans", method="bca_va")
    dewi, putu = log_in("dewi", FINANCE), log_in("putu", FINANCE)
    post(dewi, order, "ask", amount=TOTAL, reason="out of stock")
    request = RefundRequest.objects.get()
    post(putu, order, "agree", request=request.pk)
    sent(order)
    assert held_for(order) == ["transfer_by_hand"]
    assert page_of(order) in dewi.get(reverse("operations:held")).content.decode()

    assert "Nothing was done" in post(dewi, order, "confirm", request=request.pk)
    page = post(dewi, order, "tell", request=request.pk, reason="bank transfer 4711")
    assert "another person has to confirm" in page
    assert "Nothing was done" in post(dewi, order, "confirm", request=request.pk)
    assert PaymentRefund.objects.count() == 0
    post(putu, order, "confirm", request=request.pk)

    assert (work(order).status, order.refunded_rupiah, held_for(order)) == ("refunded", TOTAL, [])
    assert PaymentRefund.objects.get().kind == "by_hand"
    assert "dewi, confirmed by putu" in dewi.get(page_of(order)).content.decode()
    assert LogEntry.objects.count() == 4


ACTIONS = ("ask", "agree", "withdraw", "tell", "confirm", "something")


@pytest.mark.parametrize(
    ("groups", "status", "allowed"),
    [((), 403, False), ((OPERATOR,), 200, False), ((FINANCE,), 200, True)],
)
def test_each_role_sees_and_does_what_it_may(
    groups: tuple[str, ...],
    status: int,
    allowed: bool,
    gateways: Simulator,  # noqa: F811
) -> None:
    order = paid(gateways, "midtrans")
    client = log_in("sari", *groups)

    page = client.get(page_of(order))
    assert page.status_code == status
    assert ('value="ask"' in page.content.decode()) == allowed
    for action in ACTIONS:
        answer = client.post(page_of(order), {"action": action, "amount": 1000, "reason": "r"})
        known = allowed and action != "something"
        assert (action, answer.status_code) == (action, 302 if known else 403)
    assert RefundRequest.objects.count() == (1 if allowed else 0)
    assert Client().get(page_of(order)).status_code == 302  # to the login


@pytest.mark.parametrize("permission", ["request_refund", "agree_refund"])
def test_one_permission_is_not_the_other(permission: str, gateways: Simulator) -> None:  # noqa: F811
    order = paid(gateways, "midtrans")
    client = log_in("sari", OPERATOR)
    user = get_user_model().objects.get(username="sari")
    user.user_permissions.add(
        get_user_model()
        .user_permissions.field.related_model.objects.filter(codename=permission)
        .get()
    )

    for action in ("ask", "tell", "withdraw"):
        answer = client.post(page_of(order), {"action": action, "amount": 1, "reason": "r"})
        assert answer.status_code == (302 if permission == "request_refund" else 403)
    for action in ("agree", "confirm"):
        answer = client.post(page_of(order), {"action": action, "request": 1})
        assert answer.status_code == (302 if permission == "agree_refund" else 403)


@pytest.mark.parametrize(
    "fields",
    [
        {"reason": ""},
        {"reason": " \t"},
        {"reason": "x" * 256},
        {"amount": ""},
        {"amount": "0"},
        {"amount": "-1"},
        {"amount": "1.5"},
        {"amount": str(TOTAL + 1)},
        {"amount": "9" * 400},
        {"amount": "NaN"},
        {"request": "9" * 30},
    ],
)
def test_what_cannot_be_is_refused_in_words(
    fields: dict[str, str],
    gateways: Simulator,  # noqa: F811
) -> None:
    order = paid(gateways, "midtrans")
    client = log_in("dewi", FINANCE)

    page = post(client, order, "ask", **{"amount": "1000", "reason": "broken", **fields})

    assert "Nothing was done." in page
    assert RefundRequest.objects.count() == 0


@pytest.mark.parametrize("field", ["action", "amount", "request", "reason"])
def test_a_nul_is_refused_wherever_it_stands(field: str, gateways: Simulator) -> None:  # noqa: F811
    order = paid(gateways, "midtrans")
    fields = {"action": "ask", "amount": "1000", "reason": "broken", field: "a\x00b"}

    answer = log_in("dewi", FINANCE).post(page_of(order), fields)

    assert answer.status_code in (302, 400, 403)
    assert RefundRequest.objects.count() == 0


def test_a_request_is_decided_on_the_page_of_its_own_payment(
    gateways: Simulator,  # noqa: F811
) -> None:
    order, other = paid(gateways, "midtrans"), paid(gateways, "xendit")
    post(log_in("dewi", FINANCE), order, "ask", amount=1000, reason="broken")
    request = RefundRequest.objects.get()

    page = post(log_in("putu", FINANCE), other, "agree", request=request.pk)

    assert "Nothing was done." in page
    request.refresh_from_db()
    assert request.status == "requested"


def test_what_waits_is_on_the_overview_and_in_the_admin(gateways: Simulator) -> None:  # noqa: F811
    order = paid(gateways, "midtrans")
    dewi = log_in("dewi", FINANCE)
    post(dewi, order, "ask", amount=1000, reason="broken")

    assert page_of(order) in dewi.get(reverse("operations:held")).content.decode()
    listed = dewi.get(reverse("admin:payments_refundrequest_changelist")).content.decode()
    assert page_of(order) in listed
    detail = reverse("admin:payments_refundrequest_change", args=[RefundRequest.objects.get().pk])
    assert dewi.get(detail).status_code == 200
    payment = reverse("admin:payments_payment_change", args=[Payment.objects.get(order=order).pk])
    assert page_of(order) in dewi.get(payment).content.decode()
