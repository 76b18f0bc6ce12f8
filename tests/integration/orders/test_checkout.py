"""Checkout: what one transaction makes, and every refusal."""

import re
from dataclasses import replace
from datetime import datetime

import pytest
from django.conf import LazySettings
from django.db import transaction

from orders import exceptions, order_numbers, payment_methods
from orders.checkout import Item, place_order
from orders.models import CheckoutRequest, Order, OrderLine, StockMovement
from orders.payment_methods import FREE, PaymentMethod
from skincare.events.models import OutboxEvent
from skincare.events.schema import new_event_id, parse_event
from tests.integration.orders.shop import METHOD, a_product, movements, numbers, place

pytestmark = pytest.mark.django_db


def nothing_happened() -> bool:
    """Whether checkout left no trace."""
    return (
        not any(
            model.objects.exists() for model in (Order, OrderLine, CheckoutRequest, OutboxEvent)
        )
        and not StockMovement.objects.exclude(kind="receive").exists()
    )


def test_an_order_is_made_with_its_lines_its_reservation_its_payment_and_its_event(
    opened: list[Order],
) -> None:
    serum = a_product(stocked=10, price_rupiah=50_000, name="Serum")
    toner = a_product(stocked=3, price_rupiah=35_000, name="Toner")

    placed = place((toner, 3), (serum, 2), user_id="42")

    order = Order.objects.get()
    assert str(order.pk) == placed.order_id
    assert re.fullmatch(r"SKN-\d{8}-[2-9A-Z]{6}", order.number)
    assert (order.number, order.status, order.total_rupiah) == (
        placed.number,
        placed.status,
        placed.total_rupiah,
    )
    assert (order.status, order.total_rupiah, order.user_id) == ("pending", 205_000, "42")
    assert list(order.lines.values_list("sku", "name", "quantity", "unit_price_rupiah")) == [
        (toner.sku, "Toner", 3, 35_000),
        (serum.sku, "Serum", 2, 50_000),
    ]
    assert numbers(serum) == (10, 2)
    assert numbers(toner) == (3, 3)
    assert movements(order, serum) == [("reserve", 0, 2)]
    assert opened == [order]
    event = parse_event(OutboxEvent.objects.get().payload)
    assert event.event_id == new_event_id("order.confirmed", placed.order_id)
    assert (event.event_type, event.order_id) == ("order.confirmed", placed.order_id)
    assert (event.payment_id, event.user_id, event.amount_rupiah) == ("", "42", 205_000)
    assert event.created == order.created_at


def test_the_price_is_the_one_at_checkout() -> None:
    serum = a_product(price_rupiah=50_000)
    place((serum, 1))

    serum.price_rupiah = 90_000
    serum.save(update_fields=["price_rupiah"])

    assert OrderLine.objects.get().unit_price_rupiah == 50_000
    assert Order.objects.get().total_rupiah == 50_000


def test_an_order_of_0_rupiah_is_free_whatever_the_buyer_chose(opened: list[Order]) -> None:
    sample = a_product(price_rupiah=0)

    placed = place((sample, 1))

    assert (placed.payment_method, placed.total_rupiah) == (FREE, 0)
    assert [order.payment_method for order in opened] == [FREE]


@pytest.mark.parametrize(
    ("change", "refusal", "field", "rule"),
    [
        ({"items": []}, exceptions.EmptyCart, "items", "must have at least one item"),
        (
            {"items": [Item(f"X-{n}", 1) for n in range(51)]},
            exceptions.TooManyLines,
            "items",
            "must have at most 50 items",
        ),
        (
            {"items": [Item("{sku}", 1), Item("{sku}", 2)]},
            exceptions.DuplicateSku,
            "items[1].sku",
            "is in items[0] too: put all pieces of a product into one item",
        ),
        (
            {"items": [Item("{sku}", 0)]},
            exceptions.QuantityOutOfRange,
            "items[0].quantity",
            "must be 1 to 99",
        ),
        (
            {"items": [Item("{sku}", 1), Item("OTHER-1", -1)]},
            exceptions.QuantityOutOfRange,
            "items[1].quantity",
            "must be 1 to 99",
        ),
        (
            {"items": [Item("{sku}", 100)]},
            exceptions.QuantityOutOfRange,
            "items[0].quantity",
            "must be 1 to 99",
        ),
        (
            {"items": [Item("{sku}", 1), Item("NO-SUCH", 1)]},
            exceptions.UnknownSku,
            "items[1].sku",
            "is not a product that we sell",
        ),
        (
            {"items": [Item("NUL-\x00", 1)]},
            exceptions.UnknownSku,
            "items[0].sku",
            "is not a product that we sell",
        ),
        (
            {"items": [Item("{sku}", 11)]},
            exceptions.NotEnoughStock,
            "items[0].quantity",
            "must be at most 10, that is all we have",
        ),
        ({"email": "sari"}, exceptions.InvalidEmail, "email", "must be an email address"),
        (
            {"email": "a@b.co\nBcc: c@d.co"},
            exceptions.InvalidEmail,
            "email",
            "must be an email address",
        ),
        (
            {"email": f"sari@{'a' * 60}.{'b' * 60}.{'c' * 60}.{'d' * 60}.{'e' * 12}.com"},
            exceptions.InvalidEmail,
            "email",
            "must be at most 254 characters",
        ),
        (
            {"payment_method": "cash"},
            exceptions.UnknownPaymentMethod,
            "payment_method",
            "must be one of: transfer",
        ),
        (
            {"payment_method": FREE},
            exceptions.UnknownPaymentMethod,
            "payment_method",
            "must be one of: transfer",
        ),
        (
            {"idempotency_key": None},
            exceptions.MissingIdempotencyKey,
            "Idempotency-Key",
            "must be sent: a value of your own, new for each order",
        ),
        (
            {"idempotency_key": ""},
            exceptions.MissingIdempotencyKey,
            "Idempotency-Key",
            "must be sent: a value of your own, new for each order",
        ),
        (
            {"idempotency_key": "with space"},
            exceptions.InvalidIdempotencyKey,
            "Idempotency-Key",
            "must be 1 to 255 visible ASCII characters",
        ),
        (
            {"idempotency_key": "k" * 256},
            exceptions.InvalidIdempotencyKey,
            "Idempotency-Key",
            "must be 1 to 255 visible ASCII characters",
        ),
    ],
)
def test_a_refusal_names_the_field_and_changes_nothing(
    change: dict[str, object],
    refusal: type[exceptions.CheckoutRefused],
    field: str,
    rule: str,
    opened: list[Order],
) -> None:
    serum = a_product(stocked=10)
    request: dict[str, object] = {
        "items": [Item("{sku}", 1)],
        "email": "sari@example.com",
        "payment_method": METHOD,
        "idempotency_key": "key-1",
    } | change
    items = [replace(i, sku=i.sku.format(sku=serum.sku)) for i in request.pop("items")]  # type: ignore[attr-defined]

    with pytest.raises(refusal) as refused:
        place_order(items=items, **request)  # type: ignore[arg-type]

    assert type(refused.value) is refusal
    assert (refused.value.where, refused.value.rule) == (field, rule)
    assert nothing_happened()
    assert opened == []
    assert numbers(serum) == (10, 0)


def test_what_others_have_reserved_is_not_for_sale() -> None:
    serum = a_product(stocked=10)
    place((serum, 8))

    with pytest.raises(exceptions.NotEnoughStock) as refused:
        place((serum, 3))

    assert refused.value.rule == "must be at most 2, that is all we have"
    assert numbers(serum) == (10, 8)


def test_one_short_line_refuses_the_whole_cart() -> None:
    serum, toner = a_product(stocked=10), a_product(stocked=0)

    with pytest.raises(exceptions.NotEnoughStock) as refused:
        place((serum, 1), (toner, 1))

    assert str(refused.value) == "items[1].quantity: none is left"
    assert nothing_happened()
    assert numbers(serum) == (10, 0)


def test_a_product_that_is_not_active_is_not_for_sale() -> None:
    serum = a_product()
    serum.is_active = False
    serum.save(update_fields=["is_active"])

    with pytest.raises(exceptions.UnknownSku):
        place((serum, 1))


def test_a_payment_that_cannot_be_opened_undoes_the_checkout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serum = a_product(stocked=10)

    def fail(order: Order) -> None:
        raise ConnectionError("no gateway")

    monkeypatch.setitem(payment_methods._methods, METHOD, PaymentMethod(METHOD, open=fail))

    with pytest.raises(ConnectionError):
        place((serum, 1))

    assert nothing_happened()
    assert numbers(serum) == (10, 0)


def test_a_number_that_is_taken_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    serum = a_product()
    draws = iter("AAAAAAAAAAAAAAAAAABBBBBB")
    monkeypatch.setattr(order_numbers.secrets, "choice", lambda _: next(draws))

    first, second = place((serum, 1)), place((serum, 1))

    assert first.number.endswith("-AAAAAA")
    assert second.number.endswith("-BBBBBB")
    assert Order.objects.count() == 2


def test_the_limits_are_the_settings(settings: LazySettings) -> None:
    serum, toner = a_product(), a_product()
    settings.CHECKOUT_MAX_QUANTITY = 2
    settings.CHECKOUT_MAX_LINES = 1

    with pytest.raises(exceptions.QuantityOutOfRange, match="must be 1 to 2"):
        place((serum, 3))
    with pytest.raises(exceptions.TooManyLines, match="must have at most 1 items"):
        place((serum, 1), (toner, 1))


def test_a_rolled_back_checkout_leaves_nothing() -> None:
    serum = a_product()

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        place((serum, 1))
        raise ZeroDivisionError

    assert nothing_happened()


def test_the_event_tells_the_time_of_jakarta() -> None:
    place((a_product(), 1))

    created_at = OutboxEvent.objects.get().payload["created_at"]
    assert created_at.endswith("+07:00")
    assert datetime.fromisoformat(created_at) == Order.objects.get().created_at
