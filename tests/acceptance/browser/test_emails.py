"""The emails as buyers see them: on a phone and wide, in light and dark, and in other programs."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer
from selenium import webdriver

from orders import catalogue, emails
from orders.checkout import Item, place_order
from orders.models import Order
from orders.payment_methods import enabled
from orders.status import OrderStatus
from tests.acceptance.browser.looks import (
    faults,
    install_tools,
    overflow,
    prefer_dark,
    resize,
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(900),
]

PHONE, WIDE = 390, 800  # pixels
#: What some programs leave out, and what is seen then: the light colours, and nothing missing.
HARMLESS = ("@media", "<style> element", "<body> element", "height property")


#: Each kind, and how the order stands when it is sent; one that waits is asked to be paid.
KINDS = {
    "order_confirmation": OrderStatus.PENDING,
    "payment_failed": OrderStatus.PENDING,
    "receipt": OrderStatus.PAID,
    "order_expired": OrderStatus.EXPIRED,
    "refund": OrderStatus.REFUNDED,
}


@pytest.fixture
def emails_of_an_order(live_server: LiveServer, settings: Any) -> dict[str, str]:
    """Every kind of email, for an order of two products with their pictures: kind to HTML."""
    settings.SHOP_URL = f"{live_server.url}/shop"
    catalogue.seed()
    placed = place_order(
        items=[Item("SRM-VITC-30", 2), Item("SUN-SPF50-50", 1)],
        email="sari@example.com",
        payment_method=next(name for name in enabled() if name != "sandbox"),
        idempotency_key="k",
    )
    order = Order.objects.prefetch_related("lines__product").get(pk=placed.order_id)
    found = {}
    for kind, order.status in KINDS.items():
        composed = emails.compose(kind, order, event_id="e", amount="Rp50.000")
        [(content, _)] = composed.alternatives
        found[kind] = str(content)
    return found


def test_no_kind_of_email_is_left_out() -> None:
    assert set(KINDS) == set(emails._SUBJECTS)


def test_each_reads_well_wide_and_narrow_light_and_dark(
    emails_of_an_order: dict[str, str], open_browser: Callable[[], webdriver.Chrome], tmp_path: Path
) -> None:
    tools = install_tools()
    shots = Path(os.environ.get("SCREENSHOTS", tmp_path))
    page = tmp_path / "email.html"
    browser = open_browser()
    for kind, html in emails_of_an_order.items():
        page.write_text(html)
        for width in (PHONE, WIDE):
            for is_dark in (False, True):
                resize(browser, width)
                prefer_dark(browser, is_dark)
                browser.get(page.as_uri())
                shade = "dark" if is_dark else "light"
                browser.save_screenshot(str(shots / f"email-{kind}-{width}-{shade}.png"))

                assert overflow(browser) == 0, (kind, width)
                assert faults(browser, tools) == [], (kind, width, is_dark)
                sizes = browser.execute_script(
                    "return [...document.images].map(image => image.naturalWidth)"
                )
                assert sizes == [240, 240], f"both pictures are in {kind}"
                buttons = browser.find_elements("link text", "Bayar sekarang")
                assert len(buttons) == (KINDS[kind] == OrderStatus.PENDING), kind
                for button in buttons:
                    assert button.size["height"] >= 44, "a finger hits it"


@pytest.mark.parametrize("kind", KINDS)
def test_mail_programs_understand_it(emails_of_an_order: dict[str, str], kind: str) -> None:
    tools = install_tools()

    checked = subprocess.run(
        ["node", "check_email.mjs"],
        cwd=tools,
        input=emails_of_an_order[kind],
        capture_output=True,
        text=True,
        check=True,
    )

    missing = [one for one in checked.stdout.splitlines() if not one.endswith(HARMLESS)]
    assert missing == []
