"""All processes together ask the gateways no faster than the one pace that they share."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Thread

import psycopg
import pytest
from django.conf import LazySettings
from django.db import connection
from django.utils import timezone

from orders.models import Order
from payments import reconciliation
from payments.models import AskingPace, Payment
from payments.reconciliation import sweep
from skincare.local.deadline import wait_until
from skincare.local.gateways.simulator import Simulator
from tests.integration.payments.gateways import an_order
from tests.integration.payments.test_paying import pay

pytestmark = pytest.mark.django_db


def due_now(*orders: Order) -> None:
    earlier = timezone.now() - timedelta(minutes=1)
    Payment.objects.filter(order__in=orders).update(next_ask_at=earlier)


def next_turn(moved: timedelta) -> None:
    AskingPace.objects.update(next_at=timezone.now() + moved)


def test_a_turn_that_another_process_has_taken_is_waited_for() -> None:
    assert reconciliation._take_turn(60.0) == 0
    assert 50 < reconciliation._take_turn(60.0) <= 60
    assert AskingPace.objects.count() == 1

    next_turn(-timedelta(seconds=1))

    assert reconciliation._take_turn(60.0) == 0


def test_no_wait_is_longer_than_the_own_pace() -> None:
    reconciliation._take_turn(60.0)
    next_turn(timedelta(hours=1))  # a clock that was put back

    assert reconciliation._take_turn(2.0) == 2.0


def test_a_sweep_that_has_nothing_to_ask_for_takes_no_turn_from_others() -> None:
    assert sweep() == 0
    assert not AskingPace.objects.exists()


def test_a_sweep_takes_a_turn_for_each_payment_after_those_of_others(
    gateways: Simulator, settings: LazySettings
) -> None:
    settings.GATEWAY_ASKS_PER_MINUTE = 600  # ten in a second
    orders = [an_order("midtrans") for _ in range(3)]
    for order in orders:
        assert pay(order).status_code == 201
    due_now(*orders)
    reconciliation._take_turn(60.0)
    free_at = timezone.now() + timedelta(seconds=0.5)
    AskingPace.objects.update(next_at=free_at)

    sweep()

    asked = [one for one in Payment.objects.values_list("asked_at", flat=True) if one is not None]
    assert len(asked) == len(orders)
    assert min(asked) >= free_at
    assert AskingPace.objects.get().next_at >= free_at + len(orders) * timedelta(seconds=0.1)


@pytest.mark.django_db(transaction=True)
def test_two_sweeps_at_once_ask_for_each_payment_once(
    gateways: Simulator, settings: LazySettings
) -> None:
    orders = [an_order("xendit") for _ in range(6)]
    for order in orders:
        assert pay(order).status_code == 201
    due_now(*orders)
    before = gateways.xendit_api.calls.count("GET /v2/invoices/{id}")

    def relay() -> None:
        try:
            sweep()
        finally:
            connection.close()

    relays = [Thread(target=relay) for _ in range(3)]
    for one in relays:
        one.start()
    for one in relays:
        one.join()

    assert gateways.xendit_api.calls.count("GET /v2/invoices/{id}") - before == len(orders)


def blocked_sessions(database: psycopg.Connection[tuple[int]]) -> int:
    counted = database.execute(
        "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
        " WHERE NOT granted AND datname = current_database()"
    ).fetchone()
    assert counted
    return counted[0]


@pytest.mark.django_db(transaction=True)
def test_two_who_take_the_first_turn_of_all_do_not_both_have_it(test_database_url: str) -> None:
    AskingPace.objects.all().delete()

    def take() -> float:
        try:
            return reconciliation._take_turn(60.0)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other, psycopg.connect(test_database_url) as first:
        first.execute(
            "INSERT INTO payments_askingpace (id, next_at)"
            " VALUES (%s, clock_timestamp() + interval '60 s')",
            [AskingPace.ONLY],
        )
        second = other.submit(take)
        wait_until(lambda: blocked_sessions(first), seconds=30, what="the second to wait")
        first.commit()

        assert second.result() == 60.0
