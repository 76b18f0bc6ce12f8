"""`make demo` and `make run`, as a newcomer starts them."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import requests

from skincare.local.deadline import wait_until

pytestmark = pytest.mark.timeout(300)


def environment() -> dict[str, str]:
    """A newcomer's: without servers of their own, or settings of these tests."""
    ours = ("DATABASE_URL", "SQS_ENDPOINT_URL", "DJANGO_SETTINGS_MODULE", "EMAIL_URL", "APP_ENV")
    return {name: value for name, value in os.environ.items() if name not in ours}


@pytest.mark.slow
def test_the_demonstration_ends_with_all_as_it_had_to_be() -> None:
    demo = subprocess.run(
        [sys.executable, "-m", "skincare.local.demo"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    verdicts = re.findall(r"  (ok|WRONG)$", demo.stdout, re.MULTILINE)
    assert verdicts == ["ok"] * 8
    assert demo.stdout.endswith("All as it had to be.\n")
    assert "dead-letter queue     1 visible" in demo.stdout


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """`make run`, and the file that it prints to."""
    output = tmp_path / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "skincare.local.run"],
            env=environment(),
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(
            lambda: "Ctrl-C" in output.read_text() or process.poll() is not None,
            seconds=200,
            what="the shop to be up",
        )
        yield process, output
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_the_shop_stays_up_until_ctrl_c(shop: tuple["subprocess.Popen[bytes]", Path]) -> None:
    process, output = shop
    printed = output.read_text()
    docs = re.search(r"http://\S+/v1/docs", printed)
    login = re.search(r"(http://\S+/admin/)  as (\S+), password (\S+)", printed)
    assert docs, printed
    assert login, printed

    page = requests.get(docs[0], timeout=10)
    assert page.status_code == 200
    assert re.findall(r"""(?:src|href)=["'](?!/)""", page.text) == []  # no CDN
    assert is_let_in(*login.groups())

    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=40) == 0
    assert output.read_text().endswith("\nStopped.\n")
    wait_until(
        lambda: not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in family),
        seconds=10,
        what="all its processes to end",
    )


def is_let_in(admin_url: str, username: str, password: str) -> bool:
    with requests.Session() as browser:
        browser.get(f"{admin_url}login/", timeout=10)
        form = {
            "username": username,
            "password": password,
            "csrfmiddlewaretoken": browser.cookies["csrftoken"],
            "next": "/admin/",
        }
        answer = browser.post(f"{admin_url}login/", data=form, timeout=10)
    return answer.url == admin_url and answer.status_code == 200
