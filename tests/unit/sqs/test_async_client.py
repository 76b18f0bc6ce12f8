"""Reading the HTTP answers of SQS, and of what sits between it and us."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kombu.asynchronous import Hub

from skincare.sqs import SQSPolicy
from skincare.sqs.async_client import (
    GARBAGE,
    NO_ANSWER,
    NOT_SENT,
    AsyncSQS,
    Result,
    SQSError,
    parse_reply,
)
from skincare.sqs.http import Reply
from skincare.sqs.policy import Observer, Wiring

DENIED = b'{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"not authorized"}'
EXPIRED = b'{"__type":"com.amazonaws.sqs#ExpiredToken","message":"The security token is expired"}'


def test_an_answer_is_a_document() -> None:
    assert parse_reply(Reply(200, b'{"Messages": []}')) == {"Messages": []}
    assert parse_reply(Reply(200, b"")) == {}, "as for a queue without messages"


def test_an_error_has_its_status_and_code() -> None:
    error = parse_reply(Reply(403, EXPIRED))

    assert error == SQSError(403, "ExpiredToken", "The security token is expired")


def test_refused_credentials_and_missing_permissions_are_told_apart() -> None:
    expired, denied = parse_reply(Reply(403, EXPIRED)), parse_reply(Reply(403, DENIED))

    assert isinstance(expired, SQSError)
    assert isinstance(denied, SQSError)
    assert (expired.credentials_refused, expired.denied) == (True, False)
    assert (denied.credentials_refused, denied.denied) == (False, True)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"null", b"5", b"\xff", b"[" * 100_000])
@pytest.mark.parametrize("status", [200, 302, 400, 503])
def test_an_answer_of_another_server_is_an_error(status: int, body: bytes) -> None:
    error = parse_reply(Reply(status, body))

    assert isinstance(error, SQSError)
    assert (error.status, error.code) == (status, GARBAGE)


def test_no_answer_is_an_error_too() -> None:
    error = parse_reply(Reply(0, error="Connection refused (curl 7)"))

    assert error == SQSError(0, NO_ANSWER, "Connection refused (curl 7)")


@given(status=st.integers(0, 599), body=st.binary())
def test_any_answer_can_be_read(status: int, body: bytes) -> None:
    result = parse_reply(Reply(status, body))

    assert isinstance(result, SQSError) or status == 200


def test_a_call_that_cannot_be_sent_is_answered(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    wiring = Wiring(SQSPolicy(), {}, "eu-west-1", "http://127.0.0.1:1", None, dict, Observer())
    sqs = AsyncSQS(hub, wiring)
    sqs.close()
    results: list[Result] = []

    sqs.call("ReceiveMessage", {}, timeout=1, done=results.append)

    assert [result.code for result in results if isinstance(result, SQSError)] == [NOT_SENT]
    assert caplog.messages == ["call_not_sent"]
