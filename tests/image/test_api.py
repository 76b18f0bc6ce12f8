"""The API of the image: in production's settings, and with a worker as the whole shop."""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import docker
import pytest
import requests
from pytest_celery import CeleryTestSetup

from orders.models import Order
from orders.status import OrderStatus
from skincare.local.deadline import wait_until
from skincare.local.sqs import free_port
from tests.acceptance.conftest import Shop
from tests.image.containers import LOCKED_DOWN

if TYPE_CHECKING:
    from docker.models.containers import Container
    from docker.models.images import Image

pytestmark = [
    pytest.mark.image,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(1800),
]

STOP_SECONDS = 60  # as long as ecs/api.yaml gives it
FROM_LOAD_BALANCER = {"Host": "shop.example", "X-Forwarded-Proto": "https"}


class Api:
    def __init__(self, container: "Container", port: int) -> None:
        self.container = container
        self._url = f"http://127.0.0.1:{port}"

    def get(self, path: str) -> requests.Response:
        return requests.get(
            self._url + path, headers=FROM_LOAD_BALANCER, allow_redirects=False, timeout=10
        )

    def post(self, path: str, document: dict[str, Any], **headers: str) -> requests.Response:
        return requests.post(
            self._url + path, json=document, headers={**FROM_LOAD_BALANCER, **headers}, timeout=10
        )

    def answers(self) -> bool:
        self.container.reload()
        assert self.container.status == "running", self.container.logs().decode()
        try:
            return self.get("/readyz").ok
        except requests.RequestException:
            return False

    def stop(self) -> int:
        self.container.stop(timeout=STOP_SECONDS)
        return int(self.container.wait()["StatusCode"])


StartApi = Callable[[dict[str, str]], Api]


@pytest.fixture
def start_api(
    docker_client: docker.DockerClient,
    image: "Image",
    volumes: dict[str, dict[str, str]],
    environment: dict[str, str],
) -> Iterator[StartApi]:
    """Start the API with some variables of its own, and wait until it is ready."""
    started = []

    def start(own: dict[str, str]) -> Api:
        port = free_port()
        container = docker_client.containers.run(
            image,
            "api",
            environment={**environment, "ALLOWED_HOSTS": "shop.example", "PORT": str(port), **own},
            volumes=volumes,
            detach=True,
            **LOCKED_DOWN,
        )
        started.append(container)
        api = Api(container, port)
        wait_until(api.answers, seconds=60, what="the API to be ready", every=0.1)
        return api

    yield start
    for container in started:
        container.remove(force=True)


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
    api = start_api(
        {
            "APP_ENV": "production",
            "ADMIN_HOSTS": "shop.example",
            "DJANGO_SETTINGS_MODULE": "skincare.settings",
            "SECRET_KEY": uuid4().hex * 2,
            "SQS_ENDPOINT_URL": "",
            "ORDER_EVENTS_QUEUE_URL": "https://sqs.ap-southeast-3.amazonaws.com/000000000000/shop",
            "MIDTRANS_SERVER_KEY": "Mid-server-0123456789abcdef",
            "XENDIT_CALLBACK_TOKEN": "callback-0123456789abcdef",
            "XENDIT_SECRET_KEY": "xnd_production_0123456789abcdef",
            "SHOP_URL": "https://shop.example",
            "EMAIL_URL": "smtp+tls://user:secret@127.0.0.1:1",
        }
    )

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
