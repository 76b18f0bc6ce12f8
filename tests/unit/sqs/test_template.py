"""A message from a template is, byte for byte, what Celery writes."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from hypothesis import given, settings
from hypothesis import strategies as st

from skincare.sqs import SQSPolicy, configure
from skincare.sqs.decoder import decode
from skincare.sqs.template import MessageTemplate

URL = "http://127.0.0.1:9324/000000000000/one"

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def app() -> Iterator[Celery]:
    app = Celery("sender", set_as_current=False)
    configure(
        app,
        policy=SQSPolicy(concurrency=1),
        queues={"one": URL},
        region="ap-southeast-3",
        endpoint_url="http://sqs",
    )
    yield app
    app.close()


def celerys(app: Celery, task_id: str, argument: Any) -> str:
    with app.producer_or_acquire() as producer, producer.channel.batch() as batch:
        app.send_task(
            "shop.sell",
            [argument],
            task_id=task_id,
            producer=producer,
            argsrepr="(…)",
            kwargsrepr="{…}",
        )
        (message,) = batch.take()
    return message.body


def tag(body: str) -> str:
    return str(json.loads(body)["properties"]["delivery_tag"])


@settings(max_examples=40)  # Celery's side takes most of the time
@given(argument=JSON, task_id=st.text("abcXYZ019._:-", min_size=1))
def test_it_is_what_celery_writes(app: Celery, argument: Any, task_id: str) -> None:
    template = MessageTemplate.of(app, "shop.sell")

    body = template.fill(task_id=task_id, argument=argument)

    own = celerys(app, task_id, argument)
    assert body.replace(tag(body), "tag") == own.replace(tag(own), "tag")


def test_each_message_has_a_tag_of_its_own(app: Celery) -> None:
    template = MessageTemplate.of(app, "shop.sell")

    tags = {tag(template.fill(task_id="one", argument=1)) for _ in range(3)}

    assert len(tags) == 3


def test_a_worker_reads_it(app: Celery) -> None:
    template = MessageTemplate.of(app, "shop.sell")

    call = decode(template.fill(task_id="7:é", argument={"a": ['"', "é", "\\"]}), None)

    assert template.queue_url == URL
    assert (call.task, call.task_id) == ("shop.sell", "7:é")
    assert list(call.args) == [{"a": ['"', "é", "\\"]}]
