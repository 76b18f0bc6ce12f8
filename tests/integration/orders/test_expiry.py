"""Orders that nobody pays give their reservation back."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import DatabaseError

from orders import lifecycle
from orders.lifecycle import expire_unpaid_orders
from orders.models import Order, OrderTransition
from skincare.events import relay
from skincare.events.schema import new_event_id
from tests.integration.orders.shop import (
    a_product,
    aged,
    an_order,
    cancelled,
    movements,
    numbers,
    paid,
)

pytestmark = pytest.mark.django_db

DAY = timedelta(hours=24)


def test_an_order_expires_when_its_time_is_over_and_not_before() -> None:
    serum = a_product(stocked=10)
    over, young = an_order((serum, 2)), an_order((serum, 3))
    aged(over, DAY + timedelta(seconds=1))
    aged(young, DAY - timedelta(minutes=1))

    assert expire_unpaid_orders(older_than=DAY) == 1

    over.refresh_from_db()
    young.refresh_from_db()
    assert (over.status, young.status) == ("expired", "pending")
    assert numbers(serum) == (10, 3)
    assert movements(over, serum) == [("reserve", 0, 2), ("release", 0, -2)]
    transition = OrderTransition.objects.get()
    assert transition.event_id == new_event_id("order.expired", str(over.pk))


def test_only_unpaid_orders_expire() -> None:
    serum = a_product(stocked=10)
    for order in (paid(an_order((serum, 1))), cancelled(an_order((serum, 1)))):
        aged(order, 10 * DAY)

    assert expire_unpaid_orders(older_than=DAY) == 0
    assert numbers(serum) == (9, 0)


def test_a_sweep_takes_the_oldest_up_to_its_limit() -> None:
    serum = a_product(stocked=10)
    orders = [an_order((serum, 1)) for _ in range(3)]
    for days, order in zip((2, 4, 3), orders, strict=True):
        aged(order, days * DAY)

    assert expire_unpaid_orders(older_than=DAY, limit=2) == 2

    assert Order.objects.get(status="pending") == orders[0]


def test_one_broken_order_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    serum = a_product(stocked=10)
    broken, fine = an_order((serum, 1)), an_order((serum, 2))
    aged(broken, 3 * DAY)
    aged(fine, 2 * DAY)
    expire = lifecycle._expire

    def fail_for_broken(order: Order) -> None:
        expire(order)
        if order.pk == broken.pk:
            raise DatabaseError("a constraint is violated")

    monkeypatch.setattr(lifecycle, "_expire", fail_for_broken)

    assert expire_unpaid_orders(older_than=DAY) == 1

    broken.refresh_from_db()
    assert broken.status == "pending"
    assert numbers(serum) == (10, 1)


def test_the_relay_sweeps_every_minute() -> None:
    serum = a_product(stocked=10)
    aged(an_order((serum, 2)), timedelta(hours=25))
    (job,) = [job for job in relay._jobs if job.name == "expire_unpaid_orders"]

    job.run()

    assert job.seconds == 60
    assert numbers(serum) == (10, 0)


def test_the_command_says_how_many_expired() -> None:
    serum = a_product(stocked=10)
    aged(an_order((serum, 2)), timedelta(hours=25))
    out = StringIO()

    call_command("expire_orders", stdout=out)
    call_command("expire_orders", "--older-than-hours=0.5", stdout=out)

    assert out.getvalue() == "1 orders expired\n0 orders expired\n"
