"""The API under attack: gunicorn as in production, on a database of its own, beside gateways."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from django.conf import settings

from skincare.local.servers import Gateways
from skincare.local.sqs import free_port
from skincare.local.supervised import Supervised
from tests.integration.web.conftest import Web


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Leave these tests alone where they are not run: to collect them, requests are made up."""
    return True if "not slow" in config.option.markexpr else None


@pytest.fixture(scope="session")
def serve(
    test_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., AbstractContextManager[Web]]:
    """Start the API, with what is special about its environment."""

    @contextmanager
    def served(**special: str) -> Iterator[Web]:
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.attack.settings",
            "DATABASE_URL": test_database_url,
            "LOG_LEVEL": "INFO",
            **special,
        }
        with Web(environment, tmp_path_factory.mktemp("web")) as web:
            yield web

    return served


@pytest.fixture(scope="session")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateways]:
    """Both gateways, which open payment pages and call no webhook."""
    server = Gateways(port=free_port(), web_url="")
    program = Supervised(
        [sys.executable, "-m", "skincare.local.gateways", "--port", server.url.rpartition(":")[2]],
        name="the gateways",
        env={
            **os.environ,
            "MIDTRANS_SERVER_KEY": settings.MIDTRANS_SERVER_KEY,
            "XENDIT_SECRET_KEY": settings.XENDIT_SECRET_KEY,
            "XENDIT_CALLBACK_TOKEN": settings.XENDIT_CALLBACK_TOKEN,
        },
        log=Path(tmp_path_factory.mktemp("gateways")) / "gateways.log",
    )
    program.wait_listening(*server.ports, seconds=60)
    yield server
    program.stop()


@pytest.fixture(scope="session")
def shop(serve: Callable[..., AbstractContextManager[Web]], gateways: Gateways) -> Iterator[Web]:
    """The API of all tests that leave it as it is, without bounds on one address."""
    with serve(**gateways.environment()) as web:
        yield web
