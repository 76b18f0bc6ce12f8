"""Every page of the operator, with a thousand dead letters and fifty thousand events."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse
from pytest_django.live_server_helper import LiveServer
from selenium import webdriver

from orders import catalogue
from orders.models import Order
from payments.models import Payment
from skincare.events.models import ProcessedEvent
from skincare.operations.models import WorkerReport
from tests.acceptance.browser.conftest import PASSWORD
from tests.acceptance.browser.looks import DESKTOP, PHONE, faults, install_tools, overflow, resize
from tests.acceptance.browser.person import Person
from tests.bench.large_tables import fill
from tests.conftest import QueuePair
from tests.integration.events.event_documents import new_event
from tests.integration.operations.conftest import Letters, as_bare, failed

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(900),
]

DEAD_LETTERS, EVENTS = 1_000, 50_000
LISTS = [
    *("orders_order", "orders_product", "orders_orderline", "orders_ordertransition"),
    *("orders_stockmovement", "payments_payment", "payments_paymentnotification"),
    *("events_outboxevent", "events_processedevent", "admin_logentry"),
]


@pytest.fixture
def large_shop(
    queue_pair: QueuePair,
    sqs_client: Any,
    sqs_server: str,
    test_database_url: str,
    settings: Any,
) -> Letters:
    settings.ORDER_EVENTS_QUEUE_URL = queue_pair.url
    settings.SQS_ENDPOINT_URL = sqs_server
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    }
    catalogue.seed()
    with psycopg.connect(test_database_url, autocommit=True) as connection:
        fill(connection, events=EVENTS)
    letters = Letters(sqs_client, queue_pair)
    timeouts = [failed(new_event(), f"TimeoutError: no answer after {n} s") for n in range(40)]
    refused = [failed(new_event(event_type="payment.failed"), "ValueError: no") for _ in range(20)]
    bodies = [as_bare(one) for one in (*timeouts, *refused)]
    bodies += [as_bare(new_event()) for _ in range(440)]
    bodies += [f"poison {n}" for n in range(DEAD_LETTERS - len(bodies))]
    letters.put(bodies)
    held = Order.objects.first()
    Order.objects.filter(pk=held.pk).update(held_reason="the amount does not fit")
    Payment.objects.filter(order=held).update(held_reason="the amount does not fit")
    ended = ProcessedEvent.objects.filter(finished_at__isnull=False).latest("finished_at")
    WorkerReport.objects.create(
        host="worker-1.shop.example",
        pid=7,
        release="3f2a91c",
        processes=5,
        started_at=ended.finished_at,
        seen_at=ended.finished_at,
        doing=[{"task": "payments.x", "event_id": ended.event_id, "since": "2026-11-30T00:00:00Z"}],
    )
    return letters


@pytest.fixture
def person(
    large_shop: Letters, live_server: LiveServer, open_browser: Callable[[], webdriver.Chrome]
) -> Person:
    get_user_model().objects.create_superuser("ayu", password=PASSWORD)
    person = Person(open_browser(), live_server.url)
    person.sign_in("ayu", PASSWORD)
    return person


def pages() -> dict[str, str]:
    event = ProcessedEvent.objects.filter(status="failed").first()
    held = Payment.objects.exclude(held_reason="").first()
    return {
        "operations": reverse("operations:overview"),
        "dead letters": reverse("operations:dead_letters"),
        "a group": f"{reverse('operations:dead_letters')}?q=TimeoutError",
        "an event": reverse("operations:event", args=[event.event_id]),
        "held": reverse("operations:held"),
        "a held payment": reverse("operations:held_payment", args=[held.pk]),
        **{name: reverse(f"admin:{name}_changelist") for name in LISTS},
    }


def test_every_page_fits_and_has_no_fault(person: Person, tmp_path: Path) -> None:
    tools = install_tools()
    shots = Path(os.environ.get("SCREENSHOTS", tmp_path))
    wrong: list[str] = []
    for name, path in pages().items():
        for width in (DESKTOP, PHONE):
            resize(person.browser, width)
            person.open(path)
            page = f"{name} at {width}"
            wrong += [f"{page}: {one}" for one in faults(person.browser, tools)]
            if (too_wide := overflow(person.browser)) > 0:
                wrong.append(f"{page}: {too_wide} pixels too wide")
            (shots / "wrong.txt").write_text("\n".join(wrong))
            person.browser.save_screenshot(str(shots / f"{name.replace(' ', '-')}-{width}.png"))
    assert wrong == [], "\n".join(wrong)


def test_a_thousand_dead_letters_are_a_short_page(person: Person) -> None:
    person.open(reverse("operations:dead_letters"))

    assert "1000 dead letters" in person.page()
    height = person.browser.execute_script("return document.documentElement.scrollHeight")
    assert height < 5_000
    person.follow("Next")
    assert "51 to 100 of 1000" in person.page()
    [group] = [text for text in person.page().splitlines() if "TimeoutError" in text][:1]
    assert "40" in group
