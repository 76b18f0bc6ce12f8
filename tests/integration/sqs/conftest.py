"""A queue pair with short numbers, a fault proxy in front of the server, and workers behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from skincare.sqs import SQSPolicy
from skincare.sqs.client import make_client
from tests.faults.proxy import FaultProxy
from tests.integration.sqs.queue_pair import Queue
from tests.integration.sqs.worker import POLICY, Station, Worker


@pytest.fixture(scope="session")
def fault_proxy(sqs_server: str) -> Iterator[FaultProxy]:
    with FaultProxy(sqs_server) as proxy:
        yield proxy


@pytest.fixture
def proxy(fault_proxy: FaultProxy) -> Iterator[FaultProxy]:
    """The proxy without faults; whatever a test injects is gone after it."""
    fault_proxy.forget()
    yield fault_proxy
    fault_proxy.clear()


@pytest.fixture(scope="session")
def make_queue(sqs_server: str) -> Callable[..., Queue]:
    """Makes a queue and its DLQ. The test reaches them past the proxy, which sees only workers."""
    client = make_client(region="us-east-1", endpoint_url=sqs_server, policy=SQSPolicy(**POLICY))

    def make(**policy: Any) -> Queue:
        return Queue.create(client, f"t-{uuid4().hex[:12]}", SQSPolicy(**{**POLICY, **policy}))

    return make


@pytest.fixture
def queue(make_queue: Callable[..., Queue]) -> Queue:
    return make_queue()


@pytest.fixture(scope="module")
def station(
    fault_proxy: FaultProxy,
    make_queue: Callable[..., Queue],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Station]:
    """One worker that has to live through all that the tests of a module do to it."""
    queue = make_queue()
    folder = tmp_path_factory.mktemp("steady")
    with Worker(folder, endpoint_url=fault_proxy.url, queues={queue.name: queue.url}) as worker:
        yield Station(worker.wait_ready(), queue)
        assert worker.running


@pytest.fixture
def steady(proxy: FaultProxy, station: Station) -> Station:
    """The module's worker, done with all that earlier tests gave it, and its calls forgotten."""
    station.queue.wait_empty(seconds=30)
    proxy.forget()
    return station


@pytest.fixture
def start_worker(proxy: FaultProxy, tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """Starts workers behind the proxy and ends them after the test."""
    with ExitStack() as stack:

        def start(*queues: Queue, ready: bool = True, **options: Any) -> Worker:
            options.setdefault("endpoint_url", proxy.url)
            names = {queue.name: queue.url for queue in queues}
            worker = Worker(tmp_path / uuid4().hex[:8], queues=names, **options)
            stack.enter_context(worker)
            return worker.wait_ready() if ready else worker

        yield start
