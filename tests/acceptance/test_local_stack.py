"""`make demo` and `make run`, as a newcomer starts them."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest
import requests

from skincare.local.deadline import wait_until
from skincare.local.run import PORT
from skincare.local.stack import PROJECT, Stack
from skincare.local.supervised import ProgramError
from tests.acceptance.local_run import Run, environment, started
from tests.processes import runs

# Each starts the whole shop, one twice, on a machine that may be busy.
pytestmark = pytest.mark.timeout(900)


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
    assert verdicts == ["ok"] * 16
    assert demo.stdout.endswith("All as it had to be.\n")
    assert "dead-letter queue     1 visible" in demo.stdout


def stopped(run: Run) -> None:
    """Press Ctrl-C, and see that nothing is left."""
    family = psutil.Process(run.process.pid).children(recursive=True)
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(timeout=40) == 0
    assert run.printed.endswith("\nStopped.\n")
    wait_until(lambda: not any(map(runs, family)), seconds=10, what="all its processes to end")


@pytest.fixture
def taken_port() -> Iterator[int]:
    """Somebody has the port that the API would have."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", PORT))
            listener.listen()
        except OSError:
            pass  # somebody has it anyway
        yield PORT


@pytest.mark.slow
def test_a_day_of_a_developer(tmp_path: Path, taken_port: int) -> None:
    folder = tmp_path / "run"
    with started(folder, tmp_path / "output") as run:
        assert run.found(rf"Port {taken_port} is taken by another program: the API gets \d+")
        (docs,) = run.found(r"http://\S+/v1/docs")
        login = run.found(r"(http://\S+/admin/)  as (\S+), password (\S+)")
        page = requests.get(docs, timeout=10)
        assert page.status_code == 200
        assert re.findall(r"""(?:src|href)=["'](?!/)""", page.text) == []  # no CDN
        assert is_let_in(*login)

        the_file_reaches_everything(run)
        a_second_run_is_told_of_the_first(run)
        the_worker_stops_and_starts_alone(run, docs.removesuffix("/docs"))
        changed_code_is_loaded(run)

        stopped(run)
        assert not (folder / "env").exists()

    with started(folder, tmp_path / "output") as again:
        assert again.found(r"/admin/  as (\S+), password (\S+)") == login[1:]
        assert is_let_in(*again.found(r"(http://\S+/admin/)  as (\S+), password (\S+)"))
        assert again.shell('psql -Atc "SELECT email FROM orders_order" "$DATABASE_URL"') == (
            "ayu@buyer.example\n"
        )
        assert len(list((folder / "emails").glob("*.eml"))) == 1
        stopped(again)


@pytest.fixture
def well_answered_port() -> Iterator[int]:
    """Somebody else's server, to whom all is well."""

    class Well(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Well) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.slow
def test_another_program_that_has_taken_the_port_is_not_taken_for_the_api(
    tmp_path: Path, well_answered_port: int
) -> None:
    assert requests.get(f"http://127.0.0.1:{well_answered_port}/readyz", timeout=5).ok

    with (
        pytest.raises(ProgramError, match="the web ended with status 1"),
        Stack(tmp_path, web_port=well_answered_port),
    ):
        pass


def the_file_reaches_everything(run: Run) -> None:
    assert run.found(r"your shell +\. (\S+/env) ") == (str(run.folder / "env"),)
    assert stat.S_IMODE((run.folder / "env").stat().st_mode) == 0o600
    products = run.shell('psql -Atc "SELECT count(*) FROM orders_product" "$DATABASE_URL"')
    assert int(products) > 15
    status = json.loads(run.shell("python manage.py status --json"))
    assert [queue["error"] for queue in status["queues"]] == [None, None]
    assert "is well" in run.shell("python -m skincare.sqs.health && echo is well")


def a_second_run_is_told_of_the_first(run: Run) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "skincare.local.run", "--folder", run.folder],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 1
    assert second.stderr.startswith(
        f"The shop of this checkout is up already, by process {run.process.pid}."
    )
    assert f". {run.folder / 'env'}" in second.stderr
    assert (run.folder / "env").exists()


def the_worker_stops_and_starts_alone(run: Run, api: str) -> None:
    assert run.order("stop") == "The worker is stopped; `make start-worker` starts it again.\n"
    emails, page = run.folder / "emails", run.found(r"emails +(http://\S+)")[0]

    bought = requests.post(
        f"{api}/checkout",
        json={
            "items": [{"sku": "CLN-GEL-100", "quantity": 1}],
            "email": "ayu@buyer.example",
            "payment_method": "midtrans",
        },
        headers={"Idempotency-Key": "k"},
        timeout=10,
    )
    assert bought.status_code == 201, bought.text
    assert list(emails.glob("*.eml")) == []

    assert run.order("start") == "The worker is up again.\n"
    wait_until(lambda: list(emails.glob("*.eml")), seconds=60, what="the email as a file")
    [file] = emails.glob("*.eml")
    assert "ayu@buyer.example" in requests.get(page, timeout=10).text
    shown = requests.get(f"{page}{file.name}", timeout=10).text
    assert "CLN-GEL-100" in shown or "Cleanser" in shown or "Rp" in shown


def changed_code_is_loaded(run: Run) -> None:
    before = run.printed.count("is up again.")
    os.utime(PROJECT / "orders" / "apps.py")
    run.wait_for("is up again.", times=before + 2)
    assert "\norders/apps.py changed.\n" in run.printed


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
