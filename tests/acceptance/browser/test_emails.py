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


@pytest.fixture
def html(live_server: LiveServer, settings: Any) -> str:
    """An order that waits for its payment, of two products with their pictures."""
    settings.SHOP_URL = f"{live_server.url}/shop"
    catalogue.seed()
    placed = place_order(
        items=[Item("SRM-VITC-30", 2), Item("SUN-SPF50-50", 1)],
        email="sari@example.com",
        payment_method=next(name for name in enabled() if name != "sandbox"),
        idempotency_key="k",
    )
    order = Order.objects.prefetch_related("lines__product").get(pk=placed.order_id)
    [(content, _)] = emails.compose("order_confirmation", order, event_id="e").alternatives
    return str(content)


def test_it_reads_well_wide_and_narrow_light_and_dark(
    html: str, open_browser: Callable[[], webdriver.Chrome], tmp_path: Path
) -> None:
    tools = install_tools()
    shots = Path(os.environ.get("SCREENSHOTS", tmp_path))
    page = tmp_path / "email.html"
    page.write_text(html)
    browser = open_browser()
    for width in (PHONE, WIDE):
        for is_dark in (False, True):
            resize(browser, width)
            prefer_dark(browser, is_dark)
            browser.get(page.as_uri())

            assert overflow(browser) == 0, width
            assert faults(browser, tools) == [], (width, is_dark)
            sizes = browser.execute_script(
                "return [...document.images].map(image => image.naturalWidth)"
            )
            assert sizes == [240, 240], "both pictures are there"
            button = browser.find_element("link text", "Bayar sekarang")
            assert button.size["height"] >= 44, "a finger hits it"
            shade = "dark" if is_dark else "light"
            browser.save_screenshot(str(shots / f"email-{width}-{shade}.png"))


def test_mail_programs_understand_it(html: str) -> None:
    tools = install_tools()

    checked = subprocess.run(
        ["node", "check_email.mjs"],
        cwd=tools,
        input=html,
        capture_output=True,
        text=True,
        check=True,
    )

    missing = [one for one in checked.stdout.splitlines() if not one.endswith(HARMLESS)]
    assert missing == []
