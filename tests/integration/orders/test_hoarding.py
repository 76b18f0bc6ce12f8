"""Nobody can set the whole shop aside without paying, and nobody is asked to pay what is paid."""

from typing import Any
from uuid import uuid4

import pytest
from django.http import HttpResponse
from django.test import Client

from orders.hoarding import Bounds, network_hash, passes
from orders.models import Order, Product
from orders.status import OrderStatus
from tests.integration.orders.shop import METHOD, a_product, numbers

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def limited(settings: Any) -> None:
    settings.LIMIT_BUYERS = True
    settings.REQUEST_LIMITS = dict.fromkeys(settings.REQUEST_LIMITS, "10000/minute")


def order(
    client: Client,
    *wanted: tuple[Product, int],
    email: str = "sari@example.com",
    address: str = "203.0.113.7",
) -> HttpResponse:
    return client.post(
        "/v1/checkout",
        {
            "items": [{"sku": product.sku, "quantity": pieces} for product, pieces in wanted],
            "email": email,
            "payment_method": METHOD,
        },
        content_type="application/json",
        headers={"Idempotency-Key": uuid4().hex},
        REMOTE_ADDR=address,
    )


def test_strangers_of_one_address_cannot_empty_the_shop(client: Client) -> None:
    products = [a_product(stocked=300) for _ in range(20)]
    cart = [(product, 99) for product in products]

    answers = [order(client, *cart, email=f"nobody{n}@example.com") for n in range(3)]

    assert {answer.status_code for answer in answers} == {429}
    assert [numbers(product) for product in products] == [(300, 0)] * 20


def test_small_orders_by_the_hundred_end_at_the_bound_too(client: Client) -> None:
    product = a_product(stocked=1_000)

    statuses = [
        order(client, (product, 9), email=f"nobody{n}@example.com").status_code for n in range(70)
    ]

    assert statuses.count(201) == 50
    assert numbers(product) == (1_000, 450)
    assert order(client, (product, 1), address="198.51.100.1").status_code == 201


def test_the_refusal_is_a_problem_that_says_what_to_do(client: Client) -> None:
    product = a_product(stocked=1_000)
    for _ in range(5):
        assert order(client, (product, 1)).status_code == 201

    answer = order(client, (product, 1), address="198.51.100.1")

    assert answer.status_code == 429
    assert answer.json()["type"] == "urn:problem-type:skincare:too-many-unpaid"
    assert int(answer["Retry-After"]) > 0
    assert answer.json()["title"] == "Too much is set aside and not paid."
    assert Order.objects.count() == 5  # and so many emails go to this address


def test_what_is_paid_counts_no_more(client: Client) -> None:
    product = a_product(stocked=1_000)
    for _ in range(5):
        order(client, (product, 1))
    Order.objects.update(status=OrderStatus.PAID)

    assert order(client, (product, 1)).status_code == 201


def test_one_buyer_gets_a_part_of_a_product_but_all_of_a_small_rest(client: Client) -> None:
    plenty, rest = a_product(stocked=100), a_product(stocked=3)

    assert order(client, (plenty, 26)).status_code == 429
    assert order(client, (plenty, 25)).status_code == 201
    assert order(client, (plenty, 1)).status_code == 429
    assert order(client, (rest, 3)).status_code == 201


def test_the_address_itself_is_not_stored(client: Client) -> None:
    order(client, (a_product(), 1))

    stored = Order.objects.get().network_hash
    assert (len(stored), "203.0.113.7" in stored) == (32, False)
    assert stored == network_hash("203.0.113.7") != network_hash("203.0.113.8")
    assert network_hash("2001:db8::1") == network_hash("2001:db8::ffff:2")
    assert network_hash("not an address") == ""


@pytest.mark.parametrize(
    ("held", "wanted", "is_over"),
    [
        ([], {1: 10}, False),
        ([], {1: 26}, True),
        ([("a", 1, 15)], {1: 10}, False),
        ([("a", 1, 16)], {1: 10}, True),
        ([("a", 2, 25), ("a", 3, 30)], {1: 10}, True),
        ([("a", 2, 1), ("b", 2, 1)], {1: 1}, True),
    ],
)
def test_the_bounds(
    held: list[tuple[object, int, int]], wanted: dict[int, int], is_over: bool
) -> None:
    bounds = Bounds(orders=2, pieces=60, share=0.25)

    assert passes(held, wanted, {1: 100, 2: 100, 3: 100}, bounds) is is_over


def test_requests_of_one_address_are_bounded_by_kind(client: Client, settings: Any) -> None:
    settings.REQUEST_LIMITS = {**settings.REQUEST_LIMITS, "pages": "3/minute"}

    def search(address: str) -> HttpResponse:
        return client.get("/v1/products", REMOTE_ADDR=address)

    statuses = [search("203.0.113.99").status_code for _ in range(5)]

    assert statuses == [200, 200, 200, 429, 429]
    refusal = search("203.0.113.99")
    assert refusal.json()["type"] == "urn:problem-type:skincare:too-many-requests"
    assert int(refusal["Retry-After"]) > 0
    assert search("203.0.113.98").status_code == 200
    assert client.get("/healthz", REMOTE_ADDR="203.0.113.99").status_code == 200
