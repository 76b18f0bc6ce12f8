"""Real workers, real SQS, real PostgreSQL: whatever fails, each event is done, and done once."""

from typing import Any

import pytest
from pytest_celery import CeleryTestSetup

from orders.models import Order, Product, StockMovement
from orders.status import OrderStatus
from tests.acceptance.conftest import PaidOrder, Shop

pytestmark = [pytest.mark.django_db(transaction=True)]

SKU = "CLN-GEL-100"


def stock() -> tuple[int, int]:
    product = Product.objects.get(sku=SKU)
    return product.stock, product.reserved


def assert_done_once(shop: Shop, paid: PaidOrder, before: tuple[int, int], **row: Any) -> None:
    """The order is paid, one piece was sold, one receipt was sent, and the queue is empty."""
    processed = shop.wait_for_status(paid.event, "done")
    shop.wait_for_empty_queue()
    order = Order.objects.get(pk=paid.placed.order_id)
    assert order.status == OrderStatus.PAID
    assert stock() == (before[0] - 1, before[1])
    assert StockMovement.objects.filter(event_id=paid.event["event_id"]).count() == 1
    assert [message["To"] for message in shop.emails()] == ["buyer@mail.example"]
    assert shop.in_dlq() == []
    assert {name: getattr(processed, name) for name in row} == row


def test_an_event_is_done(celery_setup: CeleryTestSetup, shop: Shop) -> None:
    before = stock()
    paid = shop.paid_order()

    shop.deliver(paid.event)

    assert_done_once(shop, paid, before, attempts=1, receive_count=1, last_error="")


@pytest.mark.workers(2)
def test_twenty_deliveries_at_once_have_one_set_of_effects_and_one_email(
    celery_setup: CeleryTestSetup, shop: Shop
) -> None:
    before = stock()
    paid = shop.paid_order()

    shop.deliver(paid.event, times=20)

    assert_done_once(shop, paid, before, attempts=1)


@pytest.mark.parametrize("point", ["effects", "email"])
def test_a_child_killed_in_the_middle_loses_and_repeats_nothing(
    point: str, celery_setup: CeleryTestSetup, shop: Shop
) -> None:
    before = stock()
    paid = shop.paid_order()
    shop.plan(paid.event, point, "kill")

    shop.deliver(paid.event)

    assert_done_once(shop, paid, before, attempts=2)


@pytest.mark.parametrize("point", ["effects", "email"])
def test_a_session_of_the_database_that_is_cut_off_in_the_middle_costs_no_receive(
    point: str, celery_setup: CeleryTestSetup, shop: Shop
) -> None:
    before = stock()
    paid = shop.paid_order()
    shop.plan(paid.event, point, "cut", "cut")

    shop.deliver(paid.event)

    assert_done_once(shop, paid, before, attempts=3, receive_count=1)


def test_a_child_killed_after_the_email_repeats_it_under_the_same_message_id(
    celery_setup: CeleryTestSetup, shop: Shop
) -> None:
    before = stock()
    paid = shop.paid_order()
    shop.plan(paid.event, "done", "kill")

    shop.deliver(paid.event)

    shop.wait_for_status(paid.event, "done")
    shop.wait_for_empty_queue()
    assert len(shop.emails()) == 2
    assert len({message["Message-ID"] for message in shop.emails()}) == 1
    assert stock() == (before[0] - 1, before[1])


def test_a_task_over_its_hard_time_limit_is_tried_again(
    celery_setup: CeleryTestSetup, shop: Shop
) -> None:
    before = stock()
    paid = shop.paid_order()
    shop.plan(paid.event, "effects", "hang")

    shop.deliver(paid.event)

    assert_done_once(shop, paid, before, attempts=2)
    celery_setup.worker.assert_log_exists("Hard time limit (3s) exceeded")


@pytest.mark.parametrize("point", ["effects", "email"])
def test_a_handler_that_fails_twice_works_the_third_time(
    point: str, celery_setup: CeleryTestSetup, shop: Shop
) -> None:
    before = stock()
    paid = shop.paid_order()
    shop.plan(paid.event, point, "raise", "raise")

    shop.deliver(paid.event)

    assert_done_once(shop, paid, before, attempts=3, receive_count=3)


def test_a_handler_that_always_fails_ends_in_the_dlq_after_five_receives(
    celery_setup: CeleryTestSetup, shop: Shop
) -> None:
    before = stock()
    paid = shop.paid_order()
    shop.plan(paid.event, "effects", *["raise"] * 9)

    shop.deliver(paid.event)

    shop.wait_for_empty_queue()
    [dead] = shop.in_dlq()
    assert paid.event["event_id"] in dead["Body"]
    row = shop.processed(paid.event)
    assert row is not None
    assert (row.status, row.attempts, row.receive_count) == ("failed", 5, 5)
    assert row.last_error == "InjectedError: effects"
    assert stock() == (before[0], before[1] + 1)  # still reserved
    assert shop.emails() == []


def test_events_go_on_after_a_child_was_killed(celery_setup: CeleryTestSetup, shop: Shop) -> None:
    worker = celery_setup.worker
    assert worker is not None
    pid = worker.container.pid
    first, others = shop.paid_order(), [shop.paid_order() for _ in range(12)]
    shop.plan(first.event, "effects", "kill")

    for paid in [first, *others]:
        shop.deliver(paid.event)

    for paid in [first, *others]:
        shop.wait_for_status(paid.event, "done")
    shop.wait_for_empty_queue()
    assert worker.container.pid == pid
    assert len(shop.different_emails()) == 13


@pytest.mark.workers(2)
def test_a_killed_workers_events_are_done_by_another(
    celery_setup: CeleryTestSetup, shop: Shop
) -> None:
    # A product each, so that one event's lock on its product does not hold up the others.
    products = Product.objects.filter(price_rupiah__gt=0).order_by("sku")[:4]
    before = {product.sku: product.stock for product in products}
    orders = [shop.paid_order(sku=sku) for sku in before]
    for paid in orders:
        shop.plan(paid.event, "effects", "hang")
        shop.deliver(paid.event)
    for paid in orders:
        shop.wait_for_status(paid.event, "processing")

    workers = celery_setup.worker_cluster
    workers[0].kill("SIGKILL")

    for paid in orders:
        shop.wait_for_status(paid.event, "done", seconds=60)
    shop.wait_for_empty_queue()
    after = {product.sku: product.stock for product in Product.objects.filter(sku__in=before)}
    assert after == {sku: pieces - 1 for sku, pieces in before.items()}
    assert len(shop.different_emails()) == 4


def test_an_unknown_type_is_recorded_as_skipped(celery_setup: CeleryTestSetup, shop: Shop) -> None:
    event = {**shop.paid_order().event, "event_id": "other-1", "event_type": "stock.counted"}

    shop.deliver(event)

    shop.wait_for_status(event, "skipped")
    shop.wait_for_empty_queue()
    assert shop.in_dlq() == []


def test_an_event_that_breaks_the_contract_is_dead_at_once_and_stops_nobody(
    celery_setup: CeleryTestSetup, shop: Shop
) -> None:
    before = stock()
    paid = shop.paid_order()
    broken = {**paid.event, "event_id": "broken-1", "amount_rupiah": "150000"}

    shop.deliver(broken)
    shop.deliver(paid.event)

    assert shop.wait_for_status(paid.event, "done").attempts == 1
    shop.wait_for_empty_queue()
    [dead] = shop.in_dlq()
    assert "broken-1" in dead["Body"]
    assert shop.processed(broken) is None
    assert stock() == (before[0] - 1, before[1])
