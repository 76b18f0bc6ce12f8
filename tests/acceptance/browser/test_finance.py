"""A payment that the rules would not take: one person asks, another one accepts."""

import pytest
from django.conf import settings
from django.urls import reverse
from pytest_celery import CeleryTestSetup

from orders.models import Order
from orders.status import OrderStatus
from payments.models import Payment
from skincare.local.deadline import wait_until
from skincare.local.outsiders import Buyer, Midtrans
from skincare.operations.groups import FINANCE, OPERATOR
from tests.acceptance.browser.conftest import SignIn
from tests.acceptance.conftest import Shop

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(240),
]


def held_payment(web_url: str) -> Payment:
    """Given: the buyer paid one rupiah more than the order costs."""
    answer = Buyer(web_url).check_out(
        "CLN-GEL-100", quantity=1, method="midtrans", email="buyer@mail.example"
    )
    order = answer.json()
    midtrans = Midtrans(web_url, server_key=settings.MIDTRANS_SERVER_KEY)
    paid_more = {**order, "total_rupiah": order["total_rupiah"] + 1}
    assert midtrans.send(midtrans.notification(paid_more, "settlement", "200")) == 200
    payment = Payment.objects.get(order_id=order["order_id"])
    assert payment.is_held
    return payment


def test_held_money_takes_two_persons(
    celery_setup: CeleryTestSetup, shop: Shop, web_url: str, sign_in: SignIn
) -> None:
    payment = held_payment(web_url)
    dewi, putu = sign_in("dewi", FINANCE), sign_in("putu", FINANCE)

    dewi.follow("WAITING FOR A PERSON")
    dewi.follow(payment.held_reason)
    dewi.choose("decision", "accept the money")
    dewi.type("reason", "the bank rounds up")
    dewi.press("Ask another person")
    assert "You asked for it: another person has to accept." in dewi.page()
    assert "Accept the money: accept" not in dewi.page()

    putu.open(reverse("operations:held_payment", args=[payment.pk]))
    assert "accept the money, by dewi: the bank rounds up" in putu.page()
    putu.press("Accept the money: accept")
    assert "It is not held." in putu.page()

    wait_until(
        lambda: Order.objects.get(pk=payment.order_id).status == OrderStatus.PAID,
        seconds=60,
        what="the order to be paid",
        every=0.2,
    )


def test_an_operator_sees_held_money_and_cannot_decide(
    celery_setup: CeleryTestSetup, shop: Shop, web_url: str, sign_in: SignIn
) -> None:
    payment = held_payment(web_url)
    sari = sign_in("sari", OPERATOR)

    sari.open(reverse("operations:held_payment", args=[payment.pk]))

    assert payment.held_reason in sari.page()
    assert "Ask another person" not in sari.page()
    assert "End this hold" not in sari.page()
