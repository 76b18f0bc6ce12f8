"""The proxy itself: what a client of SQS sees of each fault, and what the server sees."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    ReadTimeoutError,
)

from skincare.local.deadline import busyness, wait_until
from tests.faults.faults import (
    CutAnswer,
    Denied,
    FailedEntries,
    Fault,
    Garbage,
    Hang,
    LostAnswer,
    Reset,
    Slow,
    Status,
)
from tests.faults.proxy import FaultProxy
from tests.integration.sqs.queue_pair import Queue

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


def client_of(proxy: FaultProxy, *, read_timeout: float) -> SQSClient:
    """A client of the proxy that tries once."""
    config = Config(read_timeout=read_timeout, retries={"total_max_attempts": 1})
    return boto3.client("sqs", endpoint_url=proxy.url, region_name="us-east-1", config=config)


@pytest.fixture
def client(proxy: FaultProxy) -> SQSClient:
    """It waits as long for an answer as a busy server may take."""
    return client_of(proxy, read_timeout=30)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Status(400), "InvalidParameterValue"),
        (Status(403), "ExpiredToken"),
        (Status(429), "RequestThrottled"),
        (Status(500), "InternalError"),
        (Status(503), "ServiceUnavailable"),
        (Denied(), "AccessDenied"),
        (Denied(status=400), "AccessDenied"),
    ],
    ids=repr,
)
def test_an_error_answer_reads_as_the_code_of_sqs(
    proxy: FaultProxy, client: SQSClient, queue: Queue, fault: Fault, code: str
) -> None:
    proxy.inject(fault, action="SendMessage", queue=queue.url, times=1)

    with pytest.raises(ClientError) as error:
        client.send_message(QueueUrl=queue.url, MessageBody="x")

    assert error.value.response["Error"]["Code"] == code
    assert queue.depth().visible == 0


@pytest.mark.parametrize(
    ("fault", "error", "arrived"),
    [
        (Reset(), ConnectionClosedError, 0),
        (Hang(), ReadTimeoutError, 0),
        (LostAnswer(), ConnectionClosedError, 1),
        (Slow(seconds=1.5), ReadTimeoutError, 1),
    ],
    ids=repr,
)
def test_a_call_without_an_answer_reaches_the_server_or_not(
    proxy: FaultProxy,
    client: SQSClient,
    queue: Queue,
    fault: Fault,
    error: type[BotoCoreError],
    arrived: int,
) -> None:
    proxy.inject(fault, action="SendMessage", queue=queue.url, times=1)
    if error is ReadTimeoutError:
        client = client_of(proxy, read_timeout=1)

    with pytest.raises(error):
        client.send_message(QueueUrl=queue.url, MessageBody="x")

    # The server may end with a call after its client has given it up.
    wait_until(lambda: not proxy.open_exchanges, seconds=10, what="the server's answer")
    assert queue.depth().visible == arrived


@pytest.mark.parametrize("fault", [Garbage(), CutAnswer()], ids=repr)
def test_an_answer_that_cannot_be_read(
    proxy: FaultProxy, client: SQSClient, queue: Queue, fault: Fault
) -> None:
    proxy.inject(fault, action="SendMessage", times=1)

    with pytest.raises(KeyError):
        client.send_message(QueueUrl=queue.url, MessageBody="x")["MessageId"]


def test_a_fault_is_for_one_action_of_one_queue_some_times(
    proxy: FaultProxy, client: SQSClient, make_queue: Callable[[], Queue]
) -> None:
    broken, whole = make_queue(), make_queue()
    injection = proxy.inject(Status(503), action="SendMessage", queue=broken.url, times=2)

    client.send_message(QueueUrl=whole.url, MessageBody="x")
    client.get_queue_attributes(QueueUrl=broken.url)
    for _ in range(2):
        with pytest.raises(ClientError):
            client.send_message(QueueUrl=broken.url, MessageBody="x")
    client.send_message(QueueUrl=broken.url, MessageBody="x")

    assert injection.hits == 2
    sends = proxy.calls("SendMessage", queue=broken.url)
    assert [call.status for call in sends] == [503, 503, 200]
    assert len(proxy.calls("SendMessage")) == 4


def test_a_fault_without_times_lasts_until_it_is_cleared(
    proxy: FaultProxy, client: SQSClient, queue: Queue
) -> None:
    with proxy.inject(Status(500), queue=queue.name):
        for _ in range(3):
            with pytest.raises(ClientError):
                client.send_message(QueueUrl=queue.url, MessageBody="x")

    client.send_message(QueueUrl=queue.url, MessageBody="x")


def test_some_entries_of_a_batch_fail_and_the_others_arrive(
    proxy: FaultProxy, client: SQSClient, queue: Queue
) -> None:
    proxy.inject(
        FailedEntries("InternalError", which=lambda index, entry: entry["Id"] == "1"),
        action="SendMessageBatch",
        times=1,
    )

    answer = client.send_message_batch(
        QueueUrl=queue.url, Entries=[{"Id": str(n), "MessageBody": "x"} for n in range(3)]
    )

    assert [entry["Id"] for entry in answer["Successful"]] == ["0", "2"]
    assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [("1", "InternalError")]
    assert queue.depth().visible == 2
    assert [call.entries for call in proxy.calls("SendMessageBatch")] == [3]


def test_connections_are_refused_and_accepted_again(
    proxy: FaultProxy, client: SQSClient, queue: Queue
) -> None:
    proxy.refuse()
    with pytest.raises(EndpointConnectionError):
        client.send_message(QueueUrl=queue.url, MessageBody="x")

    proxy.listen()
    client.send_message(QueueUrl=queue.url, MessageBody="x")


def test_latency_is_added_to_each_call(proxy: FaultProxy, client: SQSClient, queue: Queue) -> None:
    proxy.latency = 0.2

    started = time.monotonic()
    client.send_message(QueueUrl=queue.url, MessageBody="x")

    assert 0.2 <= time.monotonic() - started < 0.9 * busyness()


def test_calls_at_the_same_time_do_not_wait_for_each_other(
    proxy: FaultProxy, client: SQSClient, queue: Queue
) -> None:
    proxy.latency = 0.2

    with ThreadPoolExecutor(8) as pool:
        started = time.monotonic()
        for _ in range(8):
            pool.submit(client.send_message, QueueUrl=queue.url, MessageBody="x")
    assert time.monotonic() - started < 8 * 0.2 * busyness()

    assert queue.depth().visible == 8
