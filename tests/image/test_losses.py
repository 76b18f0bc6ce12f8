"""Killed containers, and processes that the kernel kills for their memory: nothing is lost."""

from pathlib import Path

import docker
import pytest
from pytest_celery import CeleryTestSetup

from skincare.local.deadline import wait_until
from tests.acceptance.conftest import Shop
from tests.image.conftest import Numbers
from tests.image.containers import WorkerContainer
from tests.image.settings import SQS_POLICY
from tests.image.test_worker import assert_done_once

pytestmark = [
    pytest.mark.image,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(1800),
]


@pytest.fixture
def numbers() -> Numbers:
    return Numbers("tests.image.settings", SQS_POLICY)


def test_the_event_of_a_killed_container_is_done_by_the_next(
    request: pytest.FixtureRequest,
    celery_setup: CeleryTestSetup,
    shop: Shop,
    docker_client: docker.DockerClient,
    folder: Path,
    default_worker_container: WorkerContainer,
) -> None:
    paid = shop.paid_order()
    shop.plan(paid.event, "effects", "hang")
    shop.deliver(paid.event)
    wait_until(
        lambda: not any((folder / "faults").iterdir()), seconds=40, what="the task to be there"
    )

    default_worker_container.kill()

    assert docker_client.containers.get(default_worker_container.id).wait()["StatusCode"] == 137
    request.getfixturevalue("second_worker_container")
    assert_done_once(shop, paid)
    processed = shop.processed(paid.event)
    assert processed is not None
    assert processed.attempts == 2


def test_the_event_of_a_process_out_of_memory_is_done_by_the_next_process(
    celery_setup: CeleryTestSetup, shop: Shop, default_worker_container: WorkerContainer
) -> None:
    paid = shop.paid_order()
    shop.plan(paid.event, "effects", "grow")

    shop.deliver(paid.event)

    assert_done_once(shop, paid)
    default_worker_container.reload()
    assert default_worker_container.status == "running"
    assert default_worker_container.oom_kills() == 1
