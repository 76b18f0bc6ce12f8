"""A real gunicorn: checkout answers whatever SQS does, and its events go out all the same."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from pytest_celery import CeleryTestSetup

from orders.models import Order
from orders.status import OrderStatus
from skincare.events.models import OutboxEvent
from skincare.local.deadline import busyness, wait_until
from tests.acceptance.api import Api
from tests.acceptance.conftest import SharedStage, Shop, Stage
from tests.faults.faults import Fault, Hang, Status
from tests.faults.proxy import FaultProxy

pytestmark = [pytest.mark.django_db(transaction=True)]

#: A request that waited for SQS would take at least the client's timeouts.
MUCH_LESS_THAN_SQS_TIMEOUTS = 2.0  # seconds


@pytest.fixture(scope="module")
def api(
    shared_stage: SharedStage, shared_proxy: FaultProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("api")
    with Api(shared_stage.get().environment, folder, shared_proxy.url) as running:
        yield running


def unsent() -> int:
    return OutboxEvent.objects.filter(sent_at__isnull=True).count()


def wait_until_paid(shop: Shop, *order_ids: str, seconds: float = 60) -> None:
    def all_paid() -> bool:
        orders = Order.objects.filter(pk__in=order_ids, status=OrderStatus.PAID)
        return orders.count() == len(order_ids)

    wait_until(all_paid, seconds=seconds, what="the orders to be paid", every=0.1)
    # A row is marked as sent after its message is, by then perhaps done; another may be yet to go.
    wait_until(lambda: unsent() == 0, seconds=seconds, what="all events to be sent", every=0.1)
    shop.wait_for_empty_queue()


def test_a_checkout_becomes_a_paid_order_and_two_emails(
    celery_setup: CeleryTestSetup, shop: Shop, api: Api
) -> None:
    answer = api.checkout()

    assert answer.status_code == 201, answer.text
    wait_until_paid(shop, answer.json()["order_id"])
    assert len(shop.emails()) == 2  # confirmation and receipt


@pytest.mark.parametrize("fault", [Status(503), Hang(), None], ids=["503", "hang", "refused"])
def test_checkout_answers_while_sqs_is_down_and_the_event_follows(
    fault: Fault | None, celery_setup: CeleryTestSetup, shop: Shop, api: Api, proxy: FaultProxy
) -> None:
    if fault is None:
        proxy.refuse()
    else:
        proxy.inject(fault)

    started = time.monotonic()
    answers = [api.checkout() for _ in range(5)]
    assert time.monotonic() - started < busyness() * 5 * MUCH_LESS_THAN_SQS_TIMEOUTS

    assert [answer.status_code for answer in answers] == [201] * 5
    assert unsent() == 10
    proxy.clear()
    wait_until_paid(shop, *(answer.json()["order_id"] for answer in answers))
    assert len(shop.emails()) == 10


def test_a_process_killed_between_commit_and_send_loses_nothing(
    celery_setup: CeleryTestSetup,
    shop: Shop,
    api: Api,
    proxy: FaultProxy,
    stage: Stage,
    tmp_path: Path,
) -> None:
    proxy.refuse()
    with Api(stage.environment, tmp_path, proxy.url) as doomed:
        answer = doomed.checkout()
        assert answer.status_code == 201
        doomed.kill()
    assert unsent() == 2

    proxy.clear()  # another process's relay sweeps what the dead one left

    # It may have died while it sent: then its lease has to end first.
    wait_until_paid(shop, answer.json()["order_id"], seconds=60 + settings.RELAY_LEASE_SECONDS)
    assert len(shop.emails()) == 2
