"""A worker of the image, read-only and without rights, under production's numbers."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import transaction
from pytest_celery import CeleryTestSetup

from orders.models import Order, StockMovement
from orders.status import OrderStatus
from skincare.local.deadline import wait_until
from tests.acceptance.conftest import PaidOrder, Shop
from tests.image.conftest import Numbers
from tests.image.containers import WorkerContainer

pytestmark = [
    pytest.mark.image,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(1800),
]


def assert_done_once(shop: Shop, paid: PaidOrder) -> None:
    """Its order is paid, sold once, one receipt was sent, and nothing is left on the queues."""
    shop.wait_for_status(paid.event, "done")
    shop.wait_for_empty_queue()
    assert Order.objects.get(pk=paid.placed.order_id).status == OrderStatus.PAID
    assert StockMovement.objects.filter(event_id=paid.event["event_id"]).count() == 1
    assert [message["To"] for message in shop.emails()] == ["buyer@mail.example"]
    assert shop.in_dlq() == []


def test_it_processes_events_read_only_without_capabilities_as_any_user(
    celery_setup: CeleryTestSetup, shop: Shop, default_worker_container: WorkerContainer
) -> None:
    paid = shop.paid_order()

    shop.deliver(paid.event)

    assert_done_once(shop, paid)
    host_config = default_worker_container.attrs["HostConfig"]
    assert host_config["ReadonlyRootfs"] is True
    assert host_config["CapDrop"] == ["ALL"]
    status, written = default_worker_container.run(
        *("sh", "-c"),
        "id -u; grep CapEff /proc/1/status; touch /app/it 2> /dev/null || echo read-only",
    )
    assert status == 0
    assert written.split()[0] == "12345"
    assert "CapEff:\t0000000000000000" in written
    assert written.endswith("read-only\n")


def test_its_health_check_passes(
    celery_setup: CeleryTestSetup, default_worker_container: WorkerContainer
) -> None:
    assert default_worker_container.run("python", "-m", "skincare.sqs.health") == (0, "")


def test_stopped_in_the_middle_of_a_task_it_finishes_it_and_exits_with_0(
    celery_setup: CeleryTestSetup,
    shop: Shop,
    default_worker_container: WorkerContainer,
    numbers: Numbers,
) -> None:
    paid = shop.paid_order()
    with ThreadPoolExecutor(max_workers=1) as elsewhere:
        with transaction.atomic():  # the task waits for our lock
            Order.objects.select_for_update().get(pk=paid.placed.order_id)
            shop.deliver(paid.event)
            shop.wait_for_status(paid.event, "processing")

            stopped = elsewhere.submit(
                default_worker_container.stop, seconds=numbers.policy.stop_timeout
            )
            wait_until(
                lambda: "worker_draining" in default_worker_container.logs(),
                seconds=20,
                what="the worker to drain",
            )
            processed = shop.processed(paid.event)
            assert processed is not None
            assert processed.status == "processing"

        assert stopped.result(timeout=numbers.policy.stop_timeout) == 0

    assert "worker_drained" in default_worker_container.logs()
    assert_done_once(shop, paid)
