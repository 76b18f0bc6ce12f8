"""The Idempotency-Key: one order for each key, and the same answer again."""

import pytest

from orders import exceptions, payment_methods
from orders.models import GUEST, CheckoutRequest, Order
from orders.payment_methods import PaymentMethod
from skincare.events.models import OutboxEvent
from tests.integration.orders.shop import a_product, numbers, paid, place

pytestmark = pytest.mark.django_db


def test_the_same_key_and_body_get_the_same_answer_and_no_second_order(
    opened: list[Order],
) -> None:
    serum = a_product(stocked=10)

    first = place((serum, 2), key="key-1")
    again = place((serum, 2), key="key-1")

    assert again == first
    assert Order.objects.count() == CheckoutRequest.objects.count() == 1
    assert OutboxEvent.objects.count() == 1
    assert len(opened) == 1
    assert numbers(serum) == (10, 2)


def test_the_answer_stays_the_same_when_the_order_has_moved_on() -> None:
    serum = a_product(stocked=10)
    first = place((serum, 2), key="key-1")
    paid(Order.objects.get())

    assert place((serum, 2), key="key-1") == first
    assert first.status == "pending"


def test_the_answer_stays_the_same_when_the_shop_would_refuse_it_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serum = a_product(stocked=2)
    first = place((serum, 2), key="key-1")
    other = {"other": PaymentMethod("other", open=lambda order: None)}
    monkeypatch.setattr(payment_methods, "_methods", other)

    assert place((serum, 2), key="key-1") == first


@pytest.mark.parametrize(
    "change",
    [{"language": "en"}, {"payment_method": "other"}],
)
def test_another_body_under_the_same_key_is_refused(change: dict[str, str]) -> None:
    serum = a_product(stocked=10)
    place((serum, 2), key="key-1")

    with pytest.raises(exceptions.IdempotencyKeyReused) as refused:
        place((serum, 2), key="key-1", **change)

    assert refused.value.rule == "was used before with another body: use a new one"
    assert Order.objects.count() == 1


def test_another_cart_under_the_same_key_is_refused() -> None:
    serum = a_product(stocked=10)
    place((serum, 2), key="key-1")

    with pytest.raises(exceptions.IdempotencyKeyReused):
        place((serum, 1), key="key-1")

    assert numbers(serum) == (10, 2)


def test_a_guest_of_another_address_has_keys_of_their_own() -> None:
    serum = a_product(stocked=10)
    first = place((serum, 2), key="key-1", email="sari@example.com")

    assert place((serum, 2), key="key-1", email="budi@example.com").order_id != first.order_id


def test_a_guests_key_is_where_the_last_release_looks_for_it() -> None:
    serum = a_product(stocked=10)
    place((serum, 2), key="key-1")

    assert CheckoutRequest.objects.get().scope == GUEST


@pytest.mark.parametrize("email", ["sari@example.com", "Budi@bücher.example"])
def test_a_strangers_key_takes_nothing_from_a_guests_own(email: str) -> None:
    serum = a_product(stocked=10)
    place((serum, 2), key="key-1", email="stranger@example.com")

    first = place((serum, 2), key="key-1", email=email)
    again = place((serum, 2), key="key-1", email=email)
    with pytest.raises(exceptions.IdempotencyKeyReused):
        place((serum, 1), key="key-1", email=email)

    assert again == first
    assert Order.objects.count() == 2


@pytest.mark.parametrize("email", ["sari@example.com", "Budi@bücher.example"])
def test_a_guest_may_not_use_a_key_for_another_body(email: str) -> None:
    serum = a_product(stocked=10)
    place((serum, 2), key="key-1", email=email)

    with pytest.raises(exceptions.IdempotencyKeyReused):
        place((serum, 1), key="key-1", email=email)


def test_a_key_in_the_guests_own_scope_is_found_where_the_shared_one_has_become_free() -> None:
    serum = a_product(stocked=10)
    place((serum, 2), key="key-1", email="stranger@example.com")
    first = place((serum, 2), key="key-1")
    CheckoutRequest.objects.filter(scope=GUEST).delete()

    assert place((serum, 2), key="key-1") == first
    assert Order.objects.count() == 2


def test_each_buyer_has_keys_of_their_own() -> None:
    serum = a_product(stocked=10)

    answers = {
        place((serum, 1), key="key-1", user_id=user).order_id for user in ("1", "2", "guest")
    }

    assert len(answers) == 3


def test_a_refusal_does_not_use_up_the_key() -> None:
    serum = a_product(stocked=1)
    with pytest.raises(exceptions.NotEnoughStock):
        place((serum, 2), key="key-1")

    placed = place((serum, 1), key="key-1")

    assert Order.objects.get().number == placed.number
