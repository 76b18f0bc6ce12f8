"""Which messages share a call."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skincare.sqs.client import MAX_BYTES, MAX_ENTRIES, TOO_LONG, Batch, Outgoing, parts


def outgoing(number: int, size: int, queue: str = "q") -> Outgoing:
    return Outgoing(task_id=str(number), queue_url=queue, body="", size=size)


@given(
    st.lists(st.tuples(st.integers(1, MAX_BYTES), st.sampled_from(["q", "r"])), max_size=60),
)
def test_parts_hold_all_messages_in_order_within_the_limits(sizes: list[tuple[int, str]]) -> None:
    messages = [outgoing(n, size, queue) for n, (size, queue) in enumerate(sizes)]

    found = list(parts(messages))

    for part in found:
        assert 1 <= len(part) <= MAX_ENTRIES
        assert sum(message.size for message in part) <= MAX_BYTES
        assert len({message.queue_url for message in part}) == 1
    for queue in ("q", "r"):
        sent = [m for part in found for m in part if m.queue_url == queue]
        assert sent == [m for m in messages if m.queue_url == queue]


def test_no_part_is_smaller_than_it_must_be() -> None:
    assert [len(part) for part in parts(outgoing(n, 100) for n in range(25))] == [10, 10, 5]
    half = MAX_BYTES // 2
    assert [len(part) for part in parts(outgoing(n, half) for n in range(5))] == [2, 2, 1]


@pytest.mark.parametrize("text", ["x" * (MAX_BYTES + 1), "é" * (MAX_BYTES // 2 + 1)])
def test_a_message_that_sqs_never_takes_fails_at_once(text: str) -> None:
    batch = Batch()

    batch.add(task_id="long", queue_url="q", body=text)

    assert batch.failures["long"].code == TOO_LONG
    assert batch.failures["long"].sender_fault


def test_only_the_first_client_reads_what_aws_says_of_its_services() -> None:
    program = """
import sys
from skincare.settings import SQS_POLICY as policy
from skincare.sqs.client import make_client

read = []
sys.addaudithook(lambda event, values: event == "open" and read.append(str(values[0])))
for number in range(3):
    read.clear()
    make_client(region="ap-southeast-3", endpoint_url="http://127.0.0.1:1", policy=policy)
    print(any(".json" in name for name in read))
"""
    printed = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout

    assert printed.split() == ["True", "False", "False"]
