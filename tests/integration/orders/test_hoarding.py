"""Nobody can set the whole shop aside without paying, and nobody is asked to pay what is paid."""

from collections import Counter
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import jwt
import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from orders.buyers import ALGORITHM, AUDIENCE
from orders.emails import send_order_confirmation, send_receipt
from orders.hoarding import Bounds, network_hash, passes
from orders.models import Order, Product
from orders.status import OrderStatus
from tests.integration.orders.shop import METHOD, a_product, numbers
from tests.integration.orders.together import together

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
    **headers: str,
) -> HttpResponse:
    return client.post(
        "/v1/checkout",
        {
            "items": [{"sku": product.sku, "quantity": pieces} for product, pieces in wanted],
            "email": email,
            "payment_method": METHOD,
        },
        content_type="application/json",
        headers={"Idempotency-Key": uuid4().hex, **headers},
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


def test_one_mailbox_by_other_letters_is_one_buyer(client: Client) -> None:
    product = a_product(stocked=1_000)
    spellings = ["sari@example.com", "SARI@example.com", "sari+2@example.com", "Sari+3@Example.com"]

    statuses = [
        order(client, (product, 1), email=spellings[n % 4], address=f"198.51.100.{n}").status_code
        for n in range(8)
    ]

    assert statuses == [201] * 5 + [429] * 3
    assert order(client, (product, 1), email="sari.other@example.com").status_code == 201


def test_who_is_signed_in_is_one_buyer_with_any_mailbox_and_address(
    client: Client, settings: Any
) -> None:
    secret = "s" * 40
    settings.BUYER_TOKEN_SECRETS = [secret]
    claims = {"sub": "buyer-1", "aud": AUDIENCE, "exp": timezone.now() + timedelta(minutes=5)}
    token = jwt.encode(claims, secret, algorithm=ALGORITHM)
    product = a_product(stocked=1_000)

    statuses = [
        order(
            client,
            (product, 1),
            email=f"sari{n}@example.com",
            address=f"198.51.100.{n}",
            Authorization=f"Bearer {token}",
        ).status_code
        for n in range(7)
    ]

    assert statuses == [201] * 5 + [429] * 2


def test_what_costs_nothing_is_bounded_for_a_day(client: Client) -> None:
    gift = a_product(stocked=1_000, price_rupiah=0)

    statuses = [order(client, (gift, 1)).status_code for _ in range(7)]

    assert statuses == [201] * 5 + [429] * 2
    Order.objects.update(status=OrderStatus.PAID)
    assert order(client, (gift, 1)).status_code == 429
    Order.objects.update(created_at=timezone.now() - timedelta(days=2))
    assert order(client, (gift, 1)).status_code == 201


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("mine", ["email", "network", "both"])
def test_checkouts_at_the_same_moment_do_not_pass_the_bound_together(
    mine: str, settings: Any
) -> None:
    settings.UNPAID_BY_NETWORK = settings.UNPAID_BY_EMAIL
    product = a_product(stocked=1_000)

    def buy(n: int) -> int:
        return order(
            Client(),
            (product, 1),
            email="sari@example.com" if mine != "network" else f"nobody{n}@example.com",
            address="203.0.113.7" if mine != "email" else f"198.51.100.{n}",
        ).status_code

    statuses = together([partial(buy, n) for n in range(12)])

    assert Counter(statuses) == {201: 5, 429: 7}
    assert numbers(product) == (1_000, 5)


def test_a_mailbox_gets_a_bounded_number_of_emails_that_nobody_paid_for(
    client: Client, settings: Any, mailoutbox: list[Any]
) -> None:
    settings.UNPAID_EMAILS_PER_ADDRESS_AND_DAY = 3
    product = a_product(stocked=1_000)
    orders = [
        order(client, (product, 1), email=email).json()["order_id"]
        for email in (
            "sari@example.com",
            "SARI+a@example.com",
            "sari@example.com",
            "sari@example.com",
        )
    ]

    for n, order_id in enumerate(orders):
        send_order_confirmation(order_id=order_id, event_id=f"event-{n}")
    assert len(mailoutbox) == 3

    Order.objects.filter(pk=orders[3]).update(paid_at=timezone.now())
    send_receipt(order_id=orders[3], event_id="event-paid")
    assert len(mailoutbox) == 4


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
    assert network_hash("::ffff:203.0.113.7") == network_hash("203.0.113.7")
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
