"""What checkout does with each way to pay."""

import pytest
from django.conf import settings

from orders import payment_methods
from payments.models import PaymentNotification
from tests.integration.payments.gateways import TOTAL, an_order, consume_all, the_payment, told

pytestmark = pytest.mark.django_db


def test_every_enabled_provider_can_be_chosen() -> None:
    assert payment_methods.enabled() == sorted(settings.PAYMENT_PROVIDERS)
    assert payment_methods.enabled() == ["midtrans", "sandbox", "xendit"]


@pytest.mark.parametrize("gateway", ["midtrans", "xendit"])
def test_a_gateways_payment_waits(gateway: str) -> None:
    order = an_order(gateway)

    payment = the_payment(order)
    assert (payment.provider, payment.status, payment.amount_rupiah) == (gateway, "pending", TOTAL)
    assert (payment.transaction_id, payment.refunded_rupiah) == ("", 0)
    assert told(order) == []


def test_the_sandbox_settles_at_checkout() -> None:
    order = an_order("sandbox")

    payment = the_payment(order)
    assert (payment.provider, payment.status) == ("sandbox", "settled")
    assert PaymentNotification.objects.get().outcome == "applied"
    assert told(order) == [("payment.processed", TOTAL)]
    assert consume_all(order).status == "paid"


def test_an_order_of_nothing_settles_at_checkout() -> None:
    order = an_order("midtrans", price_rupiah=0)

    payment = the_payment(order)
    assert (payment.provider, payment.status, payment.amount_rupiah) == ("free", "settled", 0)
    assert told(order) == [("payment.processed", 0)]
    assert consume_all(order).status == "paid"
