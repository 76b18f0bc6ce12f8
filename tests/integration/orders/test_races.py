"""What happens when many do the same thing at the same moment."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from threading import Event
from uuid import uuid4

import pytest
from django.db import connection, transaction

from orders.checkout import Placed
from orders.exceptions import NotEnoughStock
from orders.locks import lock_products
from orders.models import CheckoutRequest, Order, OrderTransition, Product, StockMovement
from payments.expiry import expire_unpaid_orders
from skincare.events.models import OutboxEvent
from skincare.local.deadline import wait_until
from tests.integration.orders.shop import (
    a_product,
    aged,
    an_order,
    cancelled,
    movements,
    numbers,
    paid,
    place,
)
from tests.integration.orders.together import somebody_waits_for_a_lock, together

pytestmark = pytest.mark.django_db(transaction=True)

UNPAID_TIME = timedelta(hours=24)


def test_twenty_buyers_of_the_last_piece_make_one_order() -> None:
    last = a_product(stocked=1)

    answers = together([partial(place, (last, 1)) for _ in range(20)])

    assert Counter(type(answer) for answer in answers) == {Placed: 1, NotEnoughStock: 19}
    assert Order.objects.count() == 1
    assert OutboxEvent.objects.count() == 1
    assert numbers(last) == (1, 1)


def test_carts_in_opposite_order_do_not_block_each_other() -> None:
    serum, toner = a_product(stocked=40), a_product(stocked=40)
    carts = [((serum, 1), (toner, 1)), ((toner, 1), (serum, 1))] * 10

    answers = together([partial(place, *cart) for cart in carts])

    assert Counter(type(answer) for answer in answers) == {Placed: 20}
    assert numbers(serum) == numbers(toner) == (40, 20)


def test_products_are_locked_by_primary_key_whatever_the_order_of_the_cart() -> None:
    *lower, highest = products = [a_product() for _ in range(8)]
    highest_locked = Event()

    def hold_the_highest() -> list[Product]:
        with transaction.atomic():
            list(lock_products([highest.pk]))
            highest_locked.set()
            wait_until(somebody_waits_for_a_lock, seconds=20, what="the buyer to wait")
            free = Product.objects.select_for_update(skip_locked=True)
            return list(free.filter(pk__in=[product.pk for product in lower]))

    def buy() -> Placed:
        assert highest_locked.wait(timeout=20)
        return place(*[(product, 1) for product in reversed(products)])

    calls: list[Callable[[], object]] = [hold_the_highest, buy]
    still_free, placed = together(calls)

    assert still_free == []
    assert isinstance(placed, Placed)


#: As orders/0010 has it while its index is built: what is written has to fit it, but ON CONFLICT
#: does not look at it yet. Who is late stops between the look at one index and writing to either.
_BUILDING = """
ALTER TABLE orders_checkoutrequest DROP CONSTRAINT checkout_request_once;
CREATE FUNCTION pause(key text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF current_setting('skincare.late', true) = 'on' THEN
        PERFORM pg_advisory_lock(10), pg_advisory_unlock(10);
    END IF;
    RETURN key;
END $$;
CREATE INDEX checkout_pause ON orders_checkoutrequest (pause(key));
ALTER TABLE orders_checkoutrequest ADD CONSTRAINT checkout_request_key_once UNIQUE (scope, key);
CREATE UNIQUE INDEX checkout_request_once ON orders_checkoutrequest (key, scope);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'checkout_request_once'::regclass;
"""
_BUILT = """
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'checkout_request_once'::regclass;
ALTER TABLE orders_checkoutrequest
    ADD CONSTRAINT checkout_request_once UNIQUE USING INDEX checkout_request_once,
    DROP CONSTRAINT checkout_request_key_once;
DROP INDEX checkout_pause;
DROP FUNCTION pause;
"""


@pytest.fixture
def index_is_being_built() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(_BUILDING)
        yield
        cursor.execute(_BUILT)


def test_a_key_sent_twice_makes_one_order_while_another_index_on_keys_is_built(
    index_is_being_built: None,
) -> None:
    serum = a_product(stocked=20)

    def late() -> Placed:
        with connection.cursor() as cursor:
            cursor.execute("SET skincare.late = 'on'")
        return place((serum, 1), key="key-1")

    def first() -> Placed:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(10)")
            may_begin.set()
            wait_until(somebody_waits_for_a_lock, seconds=20, what="the late one to stop")
            placed = place((serum, 1), key="key-1")
            cursor.execute("SELECT pg_advisory_unlock(10)")
        return placed

    may_begin = Event()

    answers = together([lambda: may_begin.wait(timeout=20) and late(), first])

    assert [type(answer) for answer in answers] == [Placed, Placed], answers
    assert answers[0] == answers[1]
    assert Order.objects.count() == CheckoutRequest.objects.count() == 1
    assert numbers(serum) == (20, 1)


def test_one_key_sent_ten_times_at_once_makes_one_order() -> None:
    serum = a_product(stocked=20)

    answers = together([partial(place, (serum, 1), key="key-1") for _ in range(10)])

    assert len({answer.order_id for answer in answers if isinstance(answer, Placed)}) == 1
    assert Counter(type(answer) for answer in answers) == {Placed: 10}
    assert Order.objects.count() == CheckoutRequest.objects.count() == 1
    assert numbers(serum) == (20, 1)


def test_a_repeat_waits_for_the_first_and_makes_the_order_where_that_fails() -> None:
    serum = a_product(stocked=1)

    key_taken = Event()

    def first() -> None:
        with transaction.atomic():
            place((serum, 1), key="key-1")
            key_taken.set()
            wait_until(somebody_waits_for_a_lock, seconds=20, what="the repeat to wait")
            raise ConnectionError("the client's process died")

    def repeat() -> Placed:
        assert key_taken.wait(timeout=20)
        return place((serum, 1), key="key-1")

    calls: list[Callable[[], object]] = [first, repeat]
    failed, placed = together(calls)

    assert isinstance(failed, ConnectionError)
    assert isinstance(placed, Placed)
    assert str(Order.objects.get().pk) == placed.order_id
    assert numbers(serum) == (1, 1)


def test_one_event_applied_twenty_times_at_once_moves_the_stock_once() -> None:
    serum = a_product(stocked=10)
    order = an_order((serum, 2))

    together([partial(paid, order, "event-1") for _ in range(20)])

    assert numbers(serum) == (8, 0)
    assert movements(order, serum) == [("reserve", 0, 2), ("sell", -2, -2)]
    assert OrderTransition.objects.filter(order=order).count() == 1


def test_payment_and_failure_at_once_end_in_one_of_two_good_states() -> None:
    serum = a_product(stocked=10)
    orders = [an_order((serum, 1)) for _ in range(5)]
    calls: list[Callable[[], Order]] = [
        partial(move, order, str(uuid4())) for order in orders for move in (paid, cancelled)
    ]

    answers = together(calls)

    assert all(isinstance(answer, Order) for answer in answers)
    ended = Counter(Order.objects.values_list("status", flat=True))
    # Paid first and then given up, or cancelled first and then paid late.
    assert set(ended) <= {"paid", "cancelled"}
    assert numbers(serum) == (10 - ended["paid"], 0)


def test_sweeps_at_once_expire_each_order_once() -> None:
    serum = a_product(stocked=30)
    for _ in range(12):
        aged(an_order((serum, 2)), 2 * UNPAID_TIME)

    counts = together([partial(expire_unpaid_orders, older_than=UNPAID_TIME)] * 4)

    assert sum(count for count in counts if isinstance(count, int)) == 12
    assert numbers(serum) == (30, 0)
    assert StockMovement.objects.filter(kind="release").count() == 12


def test_the_sweep_passes_by_an_order_that_is_being_paid() -> None:
    serum = a_product(stocked=10)
    order = an_order((serum, 1))
    aged(order, 2 * UNPAID_TIME)

    with transaction.atomic():
        paid(order, "event-1")
        (count,) = together([partial(expire_unpaid_orders, older_than=UNPAID_TIME)])

    assert count == 0
    order.refresh_from_db()
    assert order.status == "paid"
    assert numbers(serum) == (9, 0)
