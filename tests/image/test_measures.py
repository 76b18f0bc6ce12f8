"""Sizes and start-up times, as docker/README.md tables them: printed, and bounded."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import docker
import pytest
import requests

from skincare.local.deadline import wait_until
from skincare.local.sqs import free_port
from tests.image.containers import LOCKED_DOWN

if TYPE_CHECKING:
    from docker.models.containers import Container
    from docker.models.images import Image

pytestmark = [
    pytest.mark.image,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(1800),
]

MOST_ADDED_BYTES = 150_000_000
MOST_SECONDS_TO_START = 60.0  # the start period of the health checks in ecs/


def test_sizes_and_start_up_times(
    docker_client: docker.DockerClient,
    base: str,
    image: "Image",
    environment: dict[str, str],
    volumes: dict[str, Any],
    transactional_db: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    size = image.attrs["Size"]
    added = size - docker_client.images.get(base).attrs["Size"]
    port = free_port()

    def api_is_ready() -> bool:
        try:
            return requests.get(f"http://127.0.0.1:{port}/readyz", timeout=5).ok
        except requests.RequestException:
            return False

    def seconds_until(command: str, ready: "Callable[[Container], bool]") -> float:
        begin = time.monotonic()
        container = docker_client.containers.run(
            image,
            command,
            environment={**environment, "PORT": str(port)},
            volumes=volumes,
            detach=True,
            **LOCKED_DOWN,
        )
        try:
            wait_until(lambda: ready(container), seconds=60, what=f"{command} to be ready")
            return time.monotonic() - begin
        finally:
            container.remove(force=True)

    api = seconds_until("api", lambda _: api_is_ready())
    worker = seconds_until("worker", lambda container: b"worker_ready" in container.logs())

    rows = [
        (f"base image ({base})", f"{(size - added) / 1e6:.0f} MB"),
        ("added by this project", f"{added / 1e6:.0f} MB"),
        ("api: docker run until /readyz answers", f"{api:.1f} s"),
        ("worker: docker run until it takes messages", f"{worker:.1f} s"),
    ]
    with capsys.disabled():
        print("\n" + "\n".join(f"{what:<45}{value:>10}" for what, value in rows))
    assert 0 < added < MOST_ADDED_BYTES
    assert api < MOST_SECONDS_TO_START
    assert worker < MOST_SECONDS_TO_START
