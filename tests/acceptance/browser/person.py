"""What a person does with a browser: open, read, type, tick, click."""

from dataclasses import dataclass

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

from skincare.local.deadline import wait_until

SECONDS = 30.0  # for a page of a busy machine


@dataclass(frozen=True)
class Person:
    """A browser and who sits before it. Texts are matched as they are read on the page."""

    browser: webdriver.Chrome
    web_url: str

    def sign_in(self, name: str, password: str) -> None:
        self.open("/admin/login/")
        self.type("username", name)
        self.type("password", password)
        self._leave_by(self.browser.find_element(By.CSS_SELECTOR, "[type=submit]"))
        assert self.browser.current_url == f"{self.web_url}/admin/"

    def open(self, path: str) -> None:
        self.browser.get(f"{self.web_url}{path}")

    def page(self) -> str:
        """Return the text that can be read on the page."""
        return self.browser.find_element(By.TAG_NAME, "body").text

    def links(self) -> list[str]:
        """Return where the page's links lead."""
        return [link.get_attribute("href") or "" for link in self._all("a")]

    def follow(self, text: str) -> None:
        """Click the link with this text."""
        self._leave_by(self.browser.find_element(By.LINK_TEXT, text))

    def press(self, text: str) -> None:
        """Click the button with this text."""
        [button] = [found for found in self._all("button") if found.text == text]
        self._leave_by(button)

    def type(self, field: str, text: str) -> None:
        """Type into the first field of this name."""
        self.browser.find_element(By.NAME, field).send_keys(text)

    def choose(self, field: str, text: str) -> None:
        Select(self.browser.find_element(By.NAME, field)).select_by_visible_text(text)

    def tick(self, field: str) -> None:
        """Tick the only box of this name."""
        [box] = self.browser.find_elements(By.NAME, field)
        box.click()

    def _all(self, tag: str) -> list[WebElement]:
        return self.browser.find_elements(By.TAG_NAME, tag)

    def _leave_by(self, element: WebElement) -> None:
        """Click, and wait until another page has come."""
        mark = "return window.wasLeft === undefined && document.readyState === 'complete'"
        self.browser.execute_script("window.wasLeft = false")
        element.click()
        wait_until(
            lambda: bool(self.browser.execute_script(mark)),
            seconds=SECONDS,
            what="the next page",
            every=0.05,
        )
