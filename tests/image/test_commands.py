"""The image's other commands: the migration, the relay, and any of manage.py."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import docker
import pytest

from skincare.events.models import OutboxEvent
from skincare.local.deadline import wait_until
from skincare.sqs.queues import depth
from tests.acceptance.conftest import Shop
from tests.image.containers import LOCKED_DOWN

if TYPE_CHECKING:
    from docker.models.containers import Container
    from docker.models.images import Image

pytestmark = [
    pytest.mark.image,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(1800),
]

Start = Callable[..., "Container"]


@pytest.fixture
def start(
    docker_client: docker.DockerClient,
    image: "Image",
    environment: dict[str, str],
    volumes: dict[str, Any],
    transactional_db: None,
) -> Iterator[Start]:
    """Start the image with arguments."""
    started = []

    def start(*arguments: str) -> "Container":
        container = docker_client.containers.run(
            image,
            arguments,
            environment=environment,
            volumes=volumes,
            detach=True,
            **LOCKED_DOWN,
        )
        started.append(container)
        return container

    yield start
    for container in started:
        container.remove(force=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["migrate"], "No migrations to apply."),
        (["manage", "expire_orders"], ""),
        (["manage", "check", "--database", "default"], "System check identified no issues"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_does_its_work_and_ends(arguments: list[str], said: str, start: Start) -> None:
    container = start(*arguments)

    assert container.wait(timeout=60)["StatusCode"] == 0, container.logs().decode()
    assert said in container.logs().decode()


def test_the_relay_sends_what_waits_and_ends_at_sigterm(start: Start, shop: Shop) -> None:
    shop.paid_order()
    waiting = OutboxEvent.objects.filter(sent_at=None)
    assert waiting.count() == 2

    container = start("relay")

    wait_until(lambda: not waiting.exists(), seconds=40, what="the relay to send", every=0.1)
    assert depth(shop.client, shop.queues.url).visible == 2
    container.stop(timeout=30)
    assert container.wait()["StatusCode"] == 0
