"""The API of the image: in production's settings, and with a worker as the whole shop."""

import re
from uuid import uuid4

import pytest
from pytest_celery import CeleryTestSetup

from orders.models import Order
from orders.status import OrderStatus
from skincare.local.deadline import wait_until
from tests.acceptance.conftest import Shop
from tests.image.conftest import StartApi
from tests.image.containers import PRODUCTION

pytestmark = [
    pytest.mark.image,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(1800),
]


def test_a_checkout_over_http_is_paid_by_the_worker(
    celery_setup: CeleryTestSetup, shop: Shop, start_api: StartApi
) -> None:
    api = start_api({})

    answer = api.post(
        "/v1/checkout",
        {
            "items": [{"sku": "CLN-GEL-100", "quantity": 1}],
            "email": "buyer@mail.example",
            "payment_method": "sandbox",
        },
        **{"Idempotency-Key": uuid4().hex},
    )

    assert answer.status_code == 201, answer.text
    order = Order.objects.get(pk=answer.json()["order_id"])
    wait_until(
        lambda: len(shop.emails()) == 2, seconds=30, what="confirmation and receipt", every=0.1
    )
    shop.wait_for_empty_queue()
    order.refresh_from_db()
    assert order.status == OrderStatus.PAID
    assert shop.in_dlq() == []
    assert api.stop() == 0


def test_in_production_it_serves_the_collected_static_files(
    transactional_db: None, start_api: StartApi
) -> None:
    api = start_api(PRODUCTION)

    assert api.get("/healthz").status_code == 200
    page = api.get("/admin/login/")
    assert page.status_code == 200
    (style,) = re.findall(r'href="(/static/admin/css/base\.[0-9a-f]{12}\.css)"', page.text)
    sheet = api.get(style)
    assert sheet.status_code == 200
    assert sheet.headers["Content-Encoding"] == "gzip"
    assert "immutable" in sheet.headers["Cache-Control"]
    assert api.get("/v1/docs").status_code == 200
    assert api.stop() == 0
