"""A person at a real Chromium, before the real API, worker, queue and database."""

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from selenium import webdriver

from skincare.local.deadline import wait_until
from skincare.local.sqs import free_port
from skincare.operations.groups import FINANCE, OPERATOR, PERMISSIONS
from tests.acceptance.browser.person import Person
from tests.acceptance.conftest import Shop, Stage
from tests.acceptance.processes import ProcessHandle

PASSWORD = "a-password-of-this-test"
#: No window, no account, and no call to any other host.
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1366,768",
)


@pytest.fixture(scope="session")
def programs() -> tuple[str, str]:
    """Where Chromium and its driver are; without them the test is skipped."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip(
            "NOT TESTED: the operator's pages in a browser. Install Debian's packages chromium "
            "and chromium-driver."
        )
    return chromium, driver


@pytest.fixture
def open_browser(
    programs: tuple[str, str], tmp_path: Path
) -> Iterator[Callable[[], webdriver.Chrome]]:
    """Open browsers, each with a profile of its own; all are closed after the test."""
    opened: list[webdriver.Chrome] = []

    def open_one() -> webdriver.Chrome:
        options = webdriver.ChromeOptions()
        options.binary_location = programs[0]
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})  # the page's console
        for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path / f'profile-{len(opened)}'}"):
            options.add_argument(argument)
        opened.append(webdriver.Chrome(options, webdriver.ChromeService(programs[1])))
        return opened[-1]

    yield open_one
    for browser in opened:
        browser.quit()


@pytest.fixture
def web_url(stage: Stage, shop: Shop) -> Iterator[str]:
    """The address of a real API, with the admin, over the stage's database and queue."""
    port = free_port()
    api = ProcessHandle(
        [
            *(sys.executable, "-m", "gunicorn", "skincare.wsgi"),
            *("--workers", "1", "--bind", f"127.0.0.1:{port}"),
        ],
        name=f"admin-{port}",
        environment=stage.environment,
        folder=stage.folder,
        ready_prompt="Listening at",
    )
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        """Ask it; its relay starts with the first request."""
        try:
            return requests.get(f"{url}/readyz", timeout=5).ok
        except requests.RequestException:
            return False

    try:
        wait_until(answers, seconds=90, what="the API to answer", every=0.2)
        yield url
    finally:
        api.teardown()


SignIn = Callable[..., Person]


@pytest.fixture
def sign_in(shop: Shop, web_url: str, open_browser: Callable[[], webdriver.Chrome]) -> SignIn:
    """Give a new member of staff, of some groups, a browser that is signed in."""

    def signed_in(name: str, *groups: str) -> Person:
        user = get_user_model().objects.create_user(name, password=PASSWORD, is_staff=True)
        user.groups.set([with_its_permissions(group) for group in groups])
        person = Person(open_browser(), web_url)
        person.sign_in(name, PASSWORD)
        return person

    return signed_in


def with_its_permissions(name: str) -> Group:
    """Return a group as its migration made it: tests with real transactions empty all tables."""
    assert name in (OPERATOR, FINANCE)
    group, _ = Group.objects.get_or_create(name=name)
    for permission in PERMISSIONS[name]:
        label, _, codename = permission.partition(".")
        found = Permission.objects.get(content_type__app_label=label, codename=codename)
        group.permissions.add(found)
    return group
