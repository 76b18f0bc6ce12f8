"""A buyer with a phone, before what `make run` starts: from the cart to the order that is paid."""

from collections.abc import Callable, Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from skincare.local.deadline import wait_until
from tests.acceptance.browser.looks import PHONE, faults, install_tools, overflow, resize
from tests.acceptance.browser.person import Person
from tests.acceptance.local_run import Run, started

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

PAID, WAITING = "Paid. Thank you!", "Waiting for your payment"
GOOD_CARD = "Card 4811111111111114 (accept)"
DECLINED_CARD = "Card 4911111111111113 (deny by the bank)"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("window")
    with started(folder / "run", folder / "output") as running:
        yield running


@pytest.fixture
def buyer(run: Run, open_browser: Callable[[], webdriver.Chrome]) -> Person:
    (address,) = run.found(r"shop window +(http://[^/]+)/")
    browser = open_browser()
    resize(browser, PHONE)
    return Person(browser, address)


def see(buyer: Person, *texts: str) -> None:
    """Wait, without doing anything, until the page says all of it."""
    wait_until(
        lambda: all(text in buyer.page() for text in texts),
        seconds=60,
        what=f"{texts} to be read",
        every=0.2,
    )


def emails_of(buyer: Person) -> list[str]:
    return [one.text for one in buyer.browser.find_elements(By.CSS_SELECTOR, "#emails button")]


def order_two_products(buyer: Person, *, at: str) -> None:
    """Fill the cart and order; ends on the gateway's payment page."""
    buyer.open("/")
    see(buyer, "left")
    first, second = buyer.browser.find_elements(By.CSS_SELECTOR, "#products button:enabled")[:2]
    for button in (first, first, second):
        button.click()
    assert "2 x " in buyer.page()
    buyer.browser.find_element(By.CSS_SELECTOR, f"#method option[value={at}]").click()
    buyer.press("Order and pay")
    see(buyer, "(simulator)", "Back to the shop")


def test_buys_and_pays_and_sees_it_without_asking(buyer: Person) -> None:
    order_two_products(buyer, at="xendit")

    buyer.press("QRIS")
    buyer.follow("Back to the shop")

    see(buyer, PAID)
    wait_until(lambda: len(emails_of(buyer)) == 2, seconds=60, what="both emails", every=0.2)
    assert emails_of(buyer)[0].startswith("Pembayaran pesanan SKN-")
    frame = buyer.browser.find_element(By.ID, "email-shown")
    buyer.browser.switch_to.frame(frame)
    see(buyer, "Terima kasih")
    sizes = buyer.browser.execute_script("return [...document.images].map(i => i.naturalWidth)")
    assert sizes == [240, 240]


def test_is_declined_and_pays_with_another_card(buyer: Person) -> None:
    order_two_products(buyer, at="midtrans")

    buyer.press(DECLINED_CARD)
    buyer.follow("Back to the shop")
    see(buyer, WAITING, "denied")
    wait_until(
        lambda: any("tidak berhasil" in one for one in emails_of(buyer)),
        seconds=60,
        what="the email about the card",
        every=0.2,
    )
    buyer.press("Pay")
    buyer.press(GOOD_CARD)
    buyer.follow("Back to the shop")

    see(buyer, PAID)


def test_abandons_it_and_comes_back_from_the_email(buyer: Person) -> None:
    order_two_products(buyer, at="xendit")
    page = buyer.browser.current_url

    buyer.browser.back()
    see(buyer, WAITING, "Until ")
    wait_until(lambda: len(emails_of(buyer)) == 1, seconds=60, what="the email", every=0.2)
    buyer.browser.switch_to.frame(buyer.browser.find_element(By.ID, "email-shown"))
    see(buyer, "Bayar sekarang")
    buyer.browser.find_element(By.LINK_TEXT, "Bayar sekarang").click()
    buyer.browser.switch_to.default_content()
    see(buyer, WAITING)
    buyer.press("Pay")
    see(buyer, "(simulator)")

    assert buyer.browser.current_url == page
    buyer.press("QRIS")
    buyer.follow("Back to the shop")
    see(buyer, PAID)


def test_pays_after_the_gateways_time_is_over(buyer: Person) -> None:
    order_two_products(buyer, at="midtrans")
    buyer.press("QRIS")

    buyer.press("Expire")
    page = buyer.browser.current_url
    buyer.follow("Back to the shop")
    see(buyer, "expired")
    assert PAID not in buyer.page()
    order_page = buyer.browser.current_url
    buyer.browser.get(page)
    buyer.press("Pay late")
    buyer.browser.get(order_page)

    see(buyer, PAID)


def test_the_window_fits_a_phone_and_has_no_fault(buyer: Person) -> None:
    tools = install_tools()
    order_two_products(buyer, at="midtrans")
    for way in ("back to the order", "the shop"):
        buyer.browser.back() if way == "back to the order" else buyer.open("/")
        see(buyer, WAITING if way == "back to the order" else "left")

        assert overflow(buyer.browser) == 0, way
        assert faults(buyer.browser, tools) == [], way
        log = buyer.browser.get_log("browser")
        errors = [one["message"] for one in log if one["level"] == "SEVERE"]
        assert [one for one in errors if buyer.web_url in one] == [], way
