"""What Celery and the task see of a message."""

from types import SimpleNamespace
from typing import Any

from skincare.sqs.consumer import Incoming
from skincare.sqs.decoder import ReceivedMessage, TaskCall
from skincare.sqs.task import TaskMessage

RECEIVED = ReceivedMessage("orders", "m-1", "handle", 3, "{}", 0.0, invisible_until=120.0)


def message(**call: Any) -> TaskMessage:
    fields: dict[str, Any] = {"task": "mail", "task_id": "t-1", "args": ["secret"], "kwargs": {}}
    incoming = Incoming(RECEIVED, TaskCall(**{**fields, **call}), tag="7")
    return TaskMessage(incoming, SimpleNamespace(consumer=None))


def test_a_task_sees_which_message_it_has_and_how_often_it_came() -> None:
    headers = message().headers

    assert headers["receive_count"] == 3
    assert headers["sqs_message_id"] == "m-1"
    assert headers["retries"] == 2


def test_the_queue_is_the_one_it_came_from() -> None:
    assert message().delivery_info == {"exchange": "", "routing_key": "orders"}


def test_nothing_of_the_arguments_is_in_what_celery_logs() -> None:
    assert "secret" not in str(message().headers)


def test_what_the_sender_says_does_not_replace_what_we_know() -> None:
    headers = message(extra={"receive_count": 99, "sqs_message_id": "x", "trace": "1"}).headers

    assert headers["receive_count"] == 3
    assert headers["sqs_message_id"] == "m-1"
    assert headers["trace"] == "1"
