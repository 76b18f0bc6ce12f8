"""A real Chromium finds no breach of the Content-Security-Policy on any page of the staff."""

import re
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth import get_user_model
from pytest_django.live_server_helper import LiveServer
from selenium import webdriver

from orders import catalogue
from skincare.local.deadline import wait_until
from tests.acceptance.browser.conftest import PASSWORD
from tests.acceptance.browser.person import Person
from tests.conftest import QueuePair
from tests.integration.events.event_documents import new_event
from tests.integration.operations.conftest import failed
from tests.integration.payments.gateways import an_order

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(900),
]

#: More than the admin has; pages that differ by an id or a query alone count as one.
MOST_PAGES = 150
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+|SKN-[\w-]+")


@pytest.fixture
def person(
    queue_pair: QueuePair,
    sqs_server: str,
    settings: Any,
    live_server: LiveServer,
    open_browser: Callable[[], webdriver.Chrome],
) -> Person:
    settings.ORDER_EVENTS_QUEUE_URL = queue_pair.url
    settings.SQS_ENDPOINT_URL = sqs_server
    catalogue.seed()
    an_order()
    failed(new_event())
    get_user_model().objects.create_superuser("ayu", password=PASSWORD)
    person = Person(open_browser(), live_server.url)
    person.sign_in("ayu", PASSWORD)
    return person


def violations(browser: webdriver.Chrome) -> list[str]:
    """What the browser's console says since it was last asked, of what the policy forbids."""
    return [
        str(line["message"])
        for line in browser.get_log("browser")
        if "Content Security Policy" in str(line["message"])
    ]


def test_no_page_of_the_admin_breaks_its_policy(person: Person) -> None:
    waiting, seen, wrong = deque(["/admin/"]), set[str](), list[str]()
    while waiting and len(seen) < MOST_PAGES:
        path = waiting.popleft()
        if (kind := _ID.sub("#", urlsplit(path).path)) in seen:
            continue
        seen.add(kind)
        person.open(path)
        wrong += [f"{path}: {one}" for one in violations(person.browser)]
        for link in map(urlsplit, person.links()):
            if f"{link.scheme}://{link.netloc}" == person.web_url and "logout" not in link.path:
                waiting.append(link.path + (f"?{link.query}" if link.query else ""))

    assert wrong == []
    assert len(seen) > 30, sorted(seen)
    assert not waiting or len(seen) < MOST_PAGES


def test_what_the_policy_forbids_would_be_seen(person: Person) -> None:
    person.open("/admin/operations/")
    assert violations(person.browser) == []

    person.browser.execute_script(
        "const code = document.createElement('script'); code.textContent = 'window.ran = 1';"
        "document.body.append(code)"
    )

    wait_until(lambda: violations(person.browser), seconds=20, what="the browser's complaint")
    assert person.browser.execute_script("return window.ran === undefined")
