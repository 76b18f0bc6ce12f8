"""Reading messages: any text is a task call or is refused, and nothing in between."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skincare.sqs import AdaptedCall
from skincare.sqs.decoder import MAX_NESTING, InvalidMessage, TaskCall, decode
from tests.faults.messages import b64, celery_message, envelope
from tests.faults.poison import poison
from tests.unit.sqs.documents import json_values

TASK = "orders.order_confirmed"

#: Poison that is well formed: only the registered tasks, or the clock, tell that it cannot run.
WELL_FORMED = {
    "task unknown",
    "too few arguments",
    "too many arguments",
    "unknown keyword",
    "expired",
    "eta in the year 9999",
}
POISON = [shape for shape in poison(TASK) if shape.name not in WELL_FORMED]


def adapt(document: dict[str, Any]) -> AdaptedCall:
    match document:
        case {"event_id": str(event_id), "event_type": str()}:
            return AdaptedCall(TASK, event_id, (document,))
    raise ValueError("event_id or event_type is missing")


def refusal(text: str) -> str:
    with pytest.raises(InvalidMessage) as refused:
        decode(text, adapt)
    return refused.value.reason


@pytest.mark.parametrize("shape", POISON, ids=lambda shape: shape.name)
def test_poison_is_refused_with_a_reason_that_holds_nothing_of_it(shape: Any) -> None:
    reason = refusal(shape.body)

    assert 0 < len(reason) <= 200
    assert TASK not in reason


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    read_or_refuse(text)


@given(json_values)
def test_any_document_is_read_or_refused(document: object) -> None:
    read_or_refuse(json.dumps(document))


@given(
    part=st.sampled_from(["body", "content-type", "content-encoding", "headers", "properties"]),
    value=json_values,
)
def test_any_outer_part_of_a_celery_message_is_read_or_refused(part: str, value: object) -> None:
    read_or_refuse(json.dumps(envelope(TASK, ["x"]) | {part: value}))


@given(header=st.sampled_from(sorted(envelope(TASK)["headers"])), value=json_values)
def test_any_header_of_a_celery_message_is_read_or_refused(header: str, value: object) -> None:
    read_or_refuse(celery_message(TASK, ["x"], headers={header: value}))


@given(arguments=json_values)
def test_any_arguments_are_read_or_refused(arguments: object) -> None:
    read_or_refuse(celery_message(TASK, body=b64(json.dumps(arguments))))


def read_or_refuse(text: str) -> None:
    try:
        call = decode(text, adapt)
    except InvalidMessage as refused:
        assert refused.reason  # noqa: PT017
    else:
        assert isinstance(call.task, str)
        assert isinstance(call.task_id, str)
        assert isinstance(call.args, list)
        assert isinstance(call.kwargs, dict)
        assert not {"task", "id", "args", "kwargs", "chain", "get"} & set(call.extra)


@given(args=st.lists(json_values, max_size=3), kwargs=st.dictionaries(st.text(), json_values))
def test_arguments_arrive_as_they_were_sent(args: list[object], kwargs: dict[str, Any]) -> None:
    body = b64(json.dumps([args, kwargs, {"callbacks": None}]))

    call = decode(celery_message(TASK, body=body), None)

    assert call.args == args
    assert call.kwargs == kwargs


@pytest.mark.parametrize("outer", ["plain", "base64"])
@pytest.mark.parametrize("inner", ["utf-8", "base64"])
def test_both_of_kombus_encodings_are_read(outer: str, inner: str) -> None:
    message = envelope(TASK, ["x"], properties={"body_encoding": inner})
    if inner == "utf-8":
        message["body"] = json.dumps([["x"], {}, {}])
    text = json.dumps(message)

    call = decode(b64(text) if outer == "base64" else text, None)

    assert (call.task, call.task_id) == (TASK, message["headers"]["id"])
    assert call.args == ["x"]


@pytest.mark.parametrize("wrapped", ["bare", "base64", "notification"])
def test_a_bare_document_is_adopted(wrapped: str) -> None:
    document = {"event_id": "e-1", "event_type": "order.confirmed", "unknown": [1]}
    text = json.dumps(document)
    if wrapped == "base64":
        text = base64.b64encode(text.encode()).decode()
    elif wrapped == "notification":
        text = json.dumps({"Type": "Notification", "TopicArn": "arn", "Message": text})

    assert decode(text, adapt) == TaskCall(TASK, "e-1", [document], {})


@pytest.mark.parametrize(
    "extra",
    [
        {"headers": {"x": "1"}, "body": "text"},
        {"headers": None, "body": None},
        {"headers": {"task": "x", "id": "1"}, "body": "W10="},
        {"headers": {"task": "x"}, "body": "W10=", "content-type": "application/json"},
        {"Type": "Notification"},
        {"Type": "Notification", "Message": "hello"},
        {"Type": "Notification", "Message": "{}", "TopicArn": "arn", "MessageId": "m"},
        {"Type": "Notification", "headers": {}, "body": ""},
        {"properties": {}, "content-type": "text/plain"},
    ],
)
def test_extra_keys_of_a_bare_document_do_not_make_another_form_of_it(
    extra: dict[str, Any],
) -> None:
    document = {"event_id": "e-1", "event_type": "order.confirmed", **extra}

    assert decode(json.dumps(document), adapt) == TaskCall(TASK, "e-1", [document], {})


def test_a_bare_document_without_anyone_to_adopt_it_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="not a Celery message"):
        decode('{"event_id": "e-1"}', None)


def test_the_reason_of_the_application_is_kept() -> None:
    assert refusal('{"event_id": 7}') == "not adopted: event_id or event_type is missing"


def test_typed_values_stay_what_they_are() -> None:
    """kombu's own decoder would make a datetime of it, or fail."""
    typed = {"__type__": "datetime", "__value__": "never"}

    assert decode(celery_message(TASK, [typed]), None).args == [typed]


def test_times_and_limits_are_read() -> None:
    headers = {
        "eta": "2026-03-01T10:00:00+07:00",
        "expires": "2026-03-01T04:00:00",
        "timelimit": [60, 30.5],
        "root_id": "root",
    }

    call = decode(celery_message(TASK, ["x"], headers=headers), None)

    assert call.eta == datetime(2026, 3, 1, 3, tzinfo=UTC)
    assert call.expires == datetime(2026, 3, 1, 4, tzinfo=UTC)
    assert (call.hard_time_limit, call.soft_time_limit) == (60, 30.5)
    assert call.root_id == "root"


def test_headers_of_tracing_are_kept_and_parts_of_the_request_are_not() -> None:
    tracing = {"traceparent": "00-1-2-01", "headers": {"sentry-trace": "1-2"}}
    hostile = {"get": 1, "chain": [1], "_protected": 1, "called_directly": True}

    call = decode(celery_message(TASK, ["x"], headers=tracing | hostile), None)

    assert call.extra == tracing


@pytest.mark.parametrize(
    ("levels", "read"), [(MAX_NESTING - 3, True), (MAX_NESTING + 1, False)], ids=["in", "beyond"]
)
def test_nesting_is_bounded(levels: int, read: bool) -> None:
    argument = "[" * levels + "]" * levels
    message = celery_message(TASK, body=b64(f"[[{argument}], {{}}, {{}}]"))

    if read:
        assert decode(message, None).args == [json.loads(argument)]
    else:
        assert "nested deeper" in refusal(message)
