"""Calls of SQS, and the HTTP answers of it and of what sits between it and us."""

import threading
from collections.abc import Callable

import pytest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st
from kombu.asynchronous import Hub

from skincare.local.deadline import wait_until
from skincare.sqs import SQSPolicy
from skincare.sqs.async_client import (
    GARBAGE,
    NO_ANSWER,
    NO_CREDENTIALS,
    NOT_SENT,
    AsyncSQS,
    Result,
    SQSError,
    parse_reply,
)
from skincare.sqs.credentials import Credentials
from skincare.sqs.http import Reply
from skincare.sqs.policy import Observer, Wiring
from tests.unit.sqs.loop import Loop

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


class SlowSource:
    """A source of credentials that takes until the test says so."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.may_answer.set()

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        self.may_answer.wait(10)
        return ReadOnlyCredentials("key", "secret", None, None)


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> SlowSource:
    slow = SlowSource()
    monkeypatch.setattr(Credentials.__init__, "__defaults__", (lambda: slow,))
    return slow


class Posts:
    """What goes out over HTTP, with its timeout; answered by the test."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, Callable[[Reply], None]]] = []

    def post(self, *_: object, timeout: float, done: Callable[[Reply], None]) -> None:
        self.sent.append((timeout, done))


def make_client(loop: Loop) -> tuple[AsyncSQS, Posts]:
    wiring = Wiring(SQSPolicy(), {}, "eu-west-1", "http://127.0.0.1:1", None, dict, Observer())
    sqs = AsyncSQS(loop, wiring)  # type: ignore[arg-type]
    sqs._http = posts = Posts()  # type: ignore[assignment]
    return sqs, posts


def test_waiting_for_credentials_takes_nothing_from_a_calls_own_time(source: SlowSource) -> None:
    loop = Loop()
    sqs, posts = make_client(loop)
    results: list[Result] = []
    sqs.call("ReceiveMessage", {}, timeout=25, done=results.append)
    source.may_answer.clear()
    posts.sent[0][1](Reply(403, EXPIRED))
    sent: list[str] = []

    sqs.call("ReceiveMessage", {}, timeout=25, done=results.append, sent=lambda: sent.append("it"))
    for _ in range(40):
        loop.fire()
    assert (len(posts.sent), sent) == (1, [])
    source.may_answer.set()
    wait_until(lambda: not sqs._credentials.renewing, seconds=5, what="the new credentials")
    loop.fire()

    assert [timeout for timeout, _ in posts.sent] == [25, 25]
    assert sent == ["it"]


def test_a_call_does_not_wait_for_credentials_for_ever(source: SlowSource) -> None:
    loop = Loop()
    sqs, posts = make_client(loop)
    results: list[Result] = []
    sqs.call("ReceiveMessage", {}, timeout=25, done=results.append)
    source.may_answer.clear()
    posts.sent[0][1](Reply(403, EXPIRED))
    results.clear()

    sqs.call("ReceiveMessage", {}, timeout=25, done=results.append)
    fired = 0
    while loop.timers and fired < 1000:
        loop.fire()
        fired += 1
    source.may_answer.set()

    assert [result.code for result in results if isinstance(result, SQSError)] == [NO_CREDENTIALS]
    assert 90 < fired < 110  # 5 s


def test_refused_credentials_are_answered_even_where_no_thread_can_start(
    source: SlowSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = Loop()
    sqs, posts = make_client(loop)
    results: list[Result] = []

    def cannot_start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", cannot_start)
    for _ in range(2):
        sqs.call("ReceiveMessage", {}, timeout=25, done=results.append)
        posts.sent[-1][1](Reply(403, EXPIRED))

    assert [result.code for result in results if isinstance(result, SQSError)] == [
        "ExpiredToken",
        "ExpiredToken",
    ]
