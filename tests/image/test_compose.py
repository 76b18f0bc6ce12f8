"""docker/compose.yaml, started whole: somebody buys in it, and pays.

Its images are built before, as a build within compose needs a plugin that not every Docker has.
What it takes from a registry is made of packages where none answers (stand-ins/).
"""

import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import docker
import pytest
import requests
import yaml

from skincare.local.deadline import wait_until
from skincare.local.outsiders import Buyer, Clerk
from tests.image.build import PROJECT, PULL_SECONDS, TAG, build_stand_in
from tests.image.daemon import run_docker

if TYPE_CHECKING:
    from docker.models.images import Image

pytestmark = [pytest.mark.image, pytest.mark.timeout(3600)]

PROGRAM = PROJECT / ".venv" / "image-lint" / "bin" / "docker-compose"
FILE = PROJECT / "docker" / "compose.yaml"
SERVICES: dict[str, Any] = yaml.safe_load(FILE.read_text())["services"]
OURS = {name for name, service in SERVICES.items() if "build" in service}
PORTS = [
    int(port.split(":")[1]) for service in SERVICES.values() for port in service.get("ports", [])
]
NAME = "skincare-test"
API, WINDOW, GATEWAYS = (f"http://127.0.0.1:{port}" for port in (8000, 8080, 8081))
SKU = "CLN-GEL-100"
START_SECONDS = 300.0

Compose = Callable[..., str]


@pytest.fixture(scope="module")
def compose(
    host: str, base: str, image: "Image", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Compose]:
    """Run a command of docker compose; return its output. All is taken down at the end."""
    if not PROGRAM.exists():
        pytest.skip(f"COMPOSE WAS NOT TRIED: {PROGRAM} is missing; `make image` installs it")
    if taken := [port for port in PORTS if is_taken(port)]:
        pytest.skip(f"COMPOSE WAS NOT TRIED: other programs have its ports {taken}")
    images = dict.fromkeys(OURS, TAG) | {
        name: image_of(host, base, name) for name in SERVICES.keys() - OURS
    }
    override = tmp_path_factory.mktemp("compose") / "override.json"
    override.write_text(
        json.dumps({"services": {name: {"image": image} for name, image in images.items()}})
    )

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [
                *(PROGRAM, "--project-name", NAME),
                *("--file", FILE, "--file", override, *arguments),
            ],
            env={**os.environ, "DOCKER_HOST": host},
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    yield run
    run("down", "--volumes", "--timeout", "10")


def image_of(host: str, base: str, name: str) -> str:
    """The image that the file names for a service, or what stands for it here."""
    image: str = SERVICES[name]["image"]
    pulled = run_docker(host, "pull", image, seconds=PULL_SECONDS)
    return build_stand_in(host, base, name) if pulled.returncode else image


def is_taken(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def test_it_starts_sells_and_ends(compose: Compose, docker_client: docker.DockerClient) -> None:
    compose("up", "--detach", "--no-build")
    wait_until(
        lambda: all_are_well(compose), seconds=START_SECONDS, what="all to be healthy", every=2
    )

    the_window_may_ask_the_api()
    one_buys("midtrans", ("pick", {"method": "gopay"}), ("pay", {}))
    one_buys("xendit", ("pay", {"channel": "DANA"}))
    assert "Nothing is stuck." in Clerk(API, "demo", "demo").read("/admin/operations/")

    compose("stop", "worker", "api")
    now = states(compose)
    assert {name: now[name]["ExitCode"] for name in ("worker", "api")} == {"worker": 0, "api": 0}
    compose("down", "--volumes", "--timeout", "10")
    assert states(compose) == {}
    mine = {"label": f"com.docker.compose.project={NAME}"}
    assert docker_client.volumes.list(filters=mine) == []
    assert docker_client.networks.list(filters=mine) == []


def states(compose: Compose) -> dict[str, dict[str, Any]]:
    """What compose says of the container of each service."""
    lines = compose("ps", "--all", "--format", "json").splitlines()
    return {one["Service"]: one for one in map(json.loads, lines)}


def all_are_well(compose: Compose) -> bool:
    now = states(compose)
    ended = {name for name, one in now.items() if one["State"] == "exited"} - {"setup"}
    assert not ended, compose("logs", "--no-color", *ended)
    return all(now[name]["Health"] == "healthy" for name in SERVICES if name != "setup")


def the_window_may_ask_the_api() -> None:
    assert API in requests.get(WINDOW, timeout=10).text
    asked = requests.get(f"{API}/v1/products", headers={"Origin": WINDOW}, timeout=10)
    assert asked.headers["Access-Control-Allow-Origin"] == WINDOW


def one_buys(method: str, *presses: tuple[str, dict[str, str]]) -> None:
    """Order in the window, pay on the gateway's page, and read both emails below the order."""
    buyer = Buyer(API)
    bought = buyer.check_out(SKU, quantity=1, method=method, email=f"{method}@buyer.example")
    assert bought.status_code == 201, bought.text
    order = bought.json()
    page = buyer.open_page(order["order_id"]).json()["redirect_url"]
    assert page.startswith(GATEWAYS)
    for action, values in presses:
        buyer.press(page, action, **values)

    wait_until(
        lambda: buyer.order(order["order_id"])["status"] == "paid",
        seconds=60,
        what="the order to be paid",
        every=0.5,
    )
    wait_until(lambda: len(emails(order)) == 2, seconds=60, what="both emails", every=0.5)
    for email in emails(order):
        shown = requests.get(f"{WINDOW}/emails/{email['id']}", timeout=10)
        assert shown.status_code == 200
        assert order["number"] in shown.text


def emails(order: dict[str, Any]) -> list[dict[str, str]]:
    """What the window shows below the order."""
    asked = requests.get(f"{WINDOW}/emails", {"order": order["number"]}, timeout=10)
    items: list[dict[str, str]] = asked.json()["items"]
    return items
