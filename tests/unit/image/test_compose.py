"""What docker/ repeats of the project's numbers and names, held to where they come from."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.urls import resolve

from skincare.local.queues import QUEUE
from skincare.local.servers import Gateways, MailServer, ShopWindow
from skincare.local.stack import WINDOW_PORT
from tests.unit.test_settings import variables_read

ROOT = Path(settings.BASE_DIR)
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())["services"]
ENTRYPOINT = (ROOT / "docker" / "entrypoint.sh").read_text()
OURS = ["setup", "api", "worker", "gateways", "window"]


def seconds(duration: str) -> int:
    assert duration.endswith("s")
    return int(duration[:-1])


@pytest.mark.parametrize("service", OURS)
def test_our_containers_cannot_write_and_have_no_rights(service: str) -> None:
    options = COMPOSE[service]

    assert options["read_only"] is True
    assert options["tmpfs"] == ["/tmp"]  # noqa: S108 the container's
    assert options["cap_drop"] == ["ALL"]
    assert options["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("service", OURS)
def test_our_containers_get_no_variable_that_nobody_reads(service: str) -> None:
    read = variables_read((ROOT / "skincare" / "settings.py").read_text())
    credentials = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}

    assert set(COMPOSE[service]["environment"]) - read == credentials


@pytest.mark.parametrize("service", ["api", "worker"])
def test_our_commands_are_known_to_the_entrypoint(service: str) -> None:
    (command,) = COMPOSE[service]["command"]

    assert re.search(rf"^ +{command}\) exec ", ENTRYPOINT, re.MULTILINE)


def test_the_worker_is_given_the_time_that_its_policy_says() -> None:
    assert seconds(COMPOSE["worker"]["stop_grace_period"]) == settings.SQS_POLICY.stop_timeout


def test_the_api_is_given_the_time_that_its_requests_may_take() -> None:
    server = runpy.run_path(str(ROOT / "gunicorn.conf.py"))

    assert seconds(COMPOSE["api"]["stop_grace_period"]) > server["graceful_timeout"]


def test_every_service_that_stays_up_has_a_health_check() -> None:
    assert {name for name in COMPOSE if "healthcheck" not in COMPOSE[name]} == {"setup"}


def test_the_health_checks_ask_what_is_there() -> None:
    (path,) = re.findall(r"127\.0\.0\.1:8000/(\w+)", str(COMPOSE["api"]["healthcheck"]["test"]))

    assert resolve(f"/{path}")
    assert COMPOSE["worker"]["healthcheck"]["test"] == [
        "CMD",
        "python",
        "-m",
        "skincare.sqs.health",
    ]


def test_the_queue_server_is_the_release_that_the_tests_run_against() -> None:
    (pinned,) = re.findall(
        r"^ministack==(\S+)", (ROOT / "requirements" / "sqs-server.in").read_text(), re.MULTILINE
    )

    assert COMPOSE["sqs"]["image"] == f"ministackorg/ministack:{pinned}"


def test_the_queue_has_its_name() -> None:
    url: str = COMPOSE["worker"]["environment"]["ORDER_EVENTS_QUEUE_URL"]

    assert url.rsplit("/", 1)[-1] == QUEUE


def test_it_has_the_servers_that_make_run_has() -> None:
    url = "http://127.0.0.1:8000"
    servers = [
        Gateways(port=8081, web_url=url),
        MailServer(Path("emails"), smtp_port=1025, page_port=8025),
        ShopWindow(port=WINDOW_PORT, web_url=url, mail_url="http://127.0.0.1:8025"),
    ]
    told = {name for server in servers for name in server.environment()}

    assert told - {"PROVIDERS_ASKED"} <= set(COMPOSE["api"]["environment"])
    for server in servers:
        assert COMPOSE[server.name]["ports"]
    for name in ("gateways", "window"):
        module = COMPOSE[name]["entrypoint"][-1]
        assert (ROOT / module.replace(".", "/") / "__main__.py").exists()
        # The image leaves it out.
        assert COMPOSE[name]["volumes"] == ["../skincare/local:/app/skincare/local:ro"]


def test_buyers_are_led_to_the_window() -> None:
    (published,) = COMPOSE["window"]["ports"]
    shop_url = COMPOSE["api"]["environment"]["SHOP_URL"]

    assert published == f"127.0.0.1:{WINDOW_PORT}:{WINDOW_PORT}"
    assert shop_url == f"http://127.0.0.1:{WINDOW_PORT}"
    assert COMPOSE["api"]["environment"]["CORS_ALLOWED_ORIGINS"] == shop_url
