"""The image is built once; each test gets containers of it, a queue, and a folder for its emails.

Workers come through pytest-celery's container fixtures. Without a Docker daemon everything here is
skipped, and says why.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import docker
import pytest
from celery import Celery
from django.conf import settings
from pytest_celery import CeleryBrokerCluster, CeleryWorkerCluster
from pytest_docker_tools import container, fxtr

from orders import catalogue
from skincare.local.deadline import busyness, wait_until
from skincare.local.postgres import PostgresServer
from skincare.local.sqs import CLIENT_ENVIRONMENT, free_port
from skincare.sqs import SQSPolicy, configure
from skincare.sqs.queues import create_queue_pair
from tests.acceptance.conftest import Shop
from tests.acceptance.processes import LocalBroker
from tests.conftest import QueuePair
from tests.image.build import PROJECT, NoImage, base_image, build_image
from tests.image.containers import LOCKED_DOWN, USER, Api, ContainerWorker, WorkerContainer
from tests.image.daemon import NoDaemon, docker_host

if TYPE_CHECKING:
    from docker.models.images import Image
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True)
class Numbers:
    """The settings module of a worker, and the policy that its queue is made for."""

    module: str
    policy: SQSPolicy


@pytest.fixture(scope="session")
def host() -> Iterator[str]:
    """The address of the Docker daemon."""
    try:
        with docker_host() as address:
            yield address
    except NoDaemon as reason:
        pytest.skip(f"NOTHING OF THE IMAGE WAS TRIED: {reason}")


@pytest.fixture(scope="session")
def docker_client(host: str) -> Iterator[docker.DockerClient]:
    """The client that pytest-celery's container fixtures use."""
    client = docker.DockerClient(base_url=host, timeout=180)
    yield client
    client.close()


@pytest.fixture(scope="session")
def base(host: str) -> str:
    """The name of the base image."""
    try:
        return base_image(host)
    except NoImage as reason:
        pytest.skip(f"NOTHING OF THE IMAGE WAS TRIED: {reason}")


@pytest.fixture(scope="session")
def image(host: str, base: str, docker_client: docker.DockerClient) -> "Image":
    """The image, built of this working tree."""
    return docker_client.images.get(build_image(host, base))


@pytest.fixture(scope="session")
def database_url() -> Iterator[str]:
    """PostgreSQL on a port, which containers reach; they cannot enter another user's folder."""
    if url := os.environ.get("DATABASE_URL"):
        yield url
    else:
        with PostgresServer(port=free_port()) as server:
            yield server.url


@pytest.fixture
def numbers() -> Numbers:
    """Production's, unless a module overrides this fixture."""
    return Numbers("skincare.settings", settings.SQS_POLICY)


@pytest.fixture
def queues(numbers: Numbers, sqs_client: "SQSClient") -> Iterator[QueuePair]:
    name = f"image-{uuid4().hex}"
    pair = QueuePair(*create_queue_pair(sqs_client, name=name, policy=numbers.policy))
    yield pair
    for url in pair:
        sqs_client.delete_queue(QueueUrl=url)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the containers see as /shop."""
    os.chown(tmp_path, USER, USER)
    for part in ("emails", "faults"):
        (tmp_path / part).mkdir()
        os.chown(tmp_path / part, USER, USER)
    return tmp_path


@pytest.fixture
def environment(
    numbers: Numbers, queues: QueuePair, test_database_url: str, sqs_server: str
) -> dict[str, str]:
    """The variables of the API and the worker."""
    return {
        **CLIENT_ENVIRONMENT,
        "APP_ENV": "test",  # production refuses an SQS server that speaks plain http
        "DJANGO_SETTINGS_MODULE": numbers.module,
        "DATABASE_URL": test_database_url,
        "ORDER_EVENTS_QUEUE_URL": queues.url,
        "SQS_ENDPOINT_URL": sqs_server,
        "EMAIL_URL": "filemail:///shop/emails",
        "FAULTS": "/shop/faults",
        "WORKER_CONCURRENCY": "2",
    }


@pytest.fixture
def volumes(folder: Path) -> dict[str, dict[str, str]]:
    """The folder, and the tests' own settings, which are not in the image."""
    return {
        str(folder): {"bind": "/shop", "mode": "rw"},
        str(PROJECT / "tests"): {"bind": "/app/tests", "mode": "ro"},
    }


@pytest.fixture
def start_seconds() -> float:
    """How long a program of the image may take to start, on a machine that is not busy."""
    return 60


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(docker_client: docker.DockerClient, image: "Image", start_seconds: float) -> Run:
    """Run the image with arguments, to its end; return exit status and output."""

    def run(*arguments: str, **options: Any) -> tuple[int, str]:
        started = docker_client.containers.run(
            image, arguments, detach=True, **LOCKED_DOWN, **options
        )
        try:
            status = started.wait(timeout=start_seconds * busyness())["StatusCode"]
            return status, started.logs().decode()
        finally:
            started.remove(force=True)

    return run


API_PORT = 18_000
"""Below the ports of outgoing connections, one of which could get it while a slow API starts."""

StartApi = Callable[[dict[str, str]], Api]


@pytest.fixture
def start_api(
    docker_client: docker.DockerClient,
    image: "Image",
    volumes: dict[str, dict[str, str]],
    environment: dict[str, str],
    start_seconds: float,
) -> Iterator[StartApi]:
    """Start the API with some variables of its own, and wait until it is ready."""
    started = []

    def start(own: dict[str, str]) -> Api:
        port = free_port(preferred=API_PORT)
        running = docker_client.containers.run(
            image,
            "api",
            environment={**environment, "ALLOWED_HOSTS": "shop.example", "PORT": str(port), **own},
            volumes=volumes,
            detach=True,
            **LOCKED_DOWN,
        )
        started.append(running)
        api = Api(running, port, seconds=start_seconds)
        wait_until(api.answers, seconds=start_seconds, what="the API to be ready", every=0.1)
        return api

    yield start
    for one in started:
        one.remove(force=True)


worker_options: dict[str, Any] = {
    **LOCKED_DOWN,
    "image": "{image.id}",
    "command": "worker",
    "environment": fxtr("environment"),
    "volumes": fxtr("volumes"),
    "mem_limit": "512m",
    "memswap_limit": "512m",
    "wrapper_class": WorkerContainer,
    "timeout": 90,
}
default_worker_container = container(**worker_options)
second_worker_container = container(**worker_options)


@pytest.fixture
def default_worker_cls() -> type[ContainerWorker]:
    return ContainerWorker


@pytest.fixture
def default_worker_app(celery_setup_app: Celery) -> Celery:
    return celery_setup_app


@pytest.fixture
def celery_worker_cluster(celery_setup_worker: ContainerWorker) -> CeleryWorkerCluster:
    return CeleryWorkerCluster(celery_setup_worker)


@pytest.fixture
def celery_broker_cluster() -> CeleryBrokerCluster:
    return CeleryBrokerCluster(LocalBroker(container=None))


@pytest.fixture
def celery_backend_cluster() -> None:
    """No results are kept."""


@pytest.fixture
def celery_setup_app(numbers: Numbers, queues: QueuePair, sqs_server: str) -> Celery:
    """The sending side."""
    name = queues.url.rsplit("/", 1)[-1]
    app = Celery(name, set_as_current=False)
    configure(
        app,
        policy=numbers.policy,
        queues={name: queues.url},
        region=settings.AWS_REGION,
        endpoint_url=sqs_server,
    )
    return app


@pytest.fixture
def shop(
    transactional_db: None,
    celery_setup_app: Celery,
    sqs_client: "SQSClient",
    queues: QueuePair,
    folder: Path,
) -> Shop:
    catalogue.seed()
    return Shop(celery_setup_app, sqs_client, queues, folder)
