"""The plain admin: people read and find, and change nothing."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from orders.models import Order
from payments.models import PaymentNotification, PaymentRefund
from tests.integration.payments.gateways import an_order, midtrans_posts, the_payment
from tests.unit.payments import midtrans_notifications as midtrans

pytestmark = pytest.mark.django_db

MODELS = ["payment", "paymentrefund", "paymentnotification"]


@pytest.fixture
def order() -> Order:
    order = an_order()
    for document in (midtrans.card("settlement"), midtrans.refunded(("r1", "50000.00"))):
        midtrans_posts({**document, "order_id": str(order.pk)})
    return order


def search(admin_client: Client, model: str, **query: str) -> int:
    response = admin_client.get(reverse(f"admin:payments_{model}_changelist"), query)
    assert response.status_code == 200
    return int(response.context["cl"].result_count)


@pytest.mark.parametrize(
    ("model", "found"), [("payment", 1), ("paymentrefund", 1), ("paymentnotification", 2)]
)
def test_search_by_order_number_and_transaction(
    model: str, found: int, order: Order, admin_client: Client
) -> None:
    an_order()

    assert search(admin_client, model, q=order.number) == found
    assert search(admin_client, model, q=midtrans.TRANSACTION_ID) == found
    assert search(admin_client, model, q="SKN-nothing") == 0


def test_held_payments_can_be_filtered(order: Order, admin_client: Client) -> None:
    held = an_order()
    wrong = midtrans.bank_transfer(transaction_id="wrong", gross_amount="1.00")
    midtrans_posts({**wrong, "order_id": str(held.pk)})

    assert search(admin_client, "payment", held="yes") == 1
    assert search(admin_client, "payment", held="no") == 1
    assert search(admin_client, "payment", provider="midtrans", status="pending") == 1


def test_a_payment_links_to_its_order_notifications_refunds_and_events(
    order: Order, admin_client: Client
) -> None:
    payment = the_payment(order)
    page = admin_client.get(reverse("admin:payments_payment_change", args=[payment.pk]))

    html = page.content.decode()
    links = [
        reverse("admin:orders_order_change", args=[order.pk]),
        reverse("admin:payments_paymentnotification_changelist")
        + f"?payment__id__exact={payment.pk}",
        reverse("admin:payments_paymentrefund_changelist") + f"?payment__id__exact={payment.pk}",
        reverse("admin:events_processedevent_changelist") + f"?q={payment.pk}",
    ]
    for link in links:
        assert f'href="{link}"' in html
        assert admin_client.get(link).status_code == 200


def test_the_links_to_a_payments_rows_find_them(order: Order, admin_client: Client) -> None:
    payment_id = str(the_payment(order).pk)

    assert search(admin_client, "paymentnotification", payment__id__exact=payment_id) == 2
    assert search(admin_client, "paymentrefund", payment__id__exact=payment_id) == 1


def test_the_pages_of_rows_link_back(order: Order, admin_client: Client) -> None:
    payment = the_payment(order)
    rows: list[tuple[str, Any]] = [("paymentrefund", PaymentRefund.objects.get())]
    rows += [("paymentnotification", row) for row in PaymentNotification.objects.all()]
    for model, row in rows:
        page = admin_client.get(reverse(f"admin:payments_{model}_change", args=[row.pk]))
        html = page.content.decode()
        assert reverse("admin:payments_payment_change", args=[payment.pk]) in html
        assert reverse("admin:orders_order_change", args=[order.pk]) in html


@pytest.mark.parametrize("model", MODELS)
def test_nothing_can_be_added_changed_or_deleted(
    model: str, order: Order, admin_client: Client
) -> None:
    rows: dict[str, Any] = {
        "payment": the_payment(order),
        "paymentrefund": PaymentRefund.objects.get(),
        "paymentnotification": PaymentNotification.objects.first(),
    }
    row = rows[model]

    assert admin_client.get(reverse(f"admin:payments_{model}_add")).status_code == 403
    change = reverse(f"admin:payments_{model}_change", args=[row.pk])
    assert admin_client.post(change, {"status": "denied"}).status_code == 403
    delete = reverse(f"admin:payments_{model}_delete", args=[row.pk])
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
