"""What can go wrong with one SQS call. The proxy picks one of these; each decides the answer.

A fault gets the call and a function that forwards it to the real server, and returns the raw HTTP
answer for the client, or raises `ConnectionDroppedError` to reset the client's connection.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Protocol

from tests.faults.wire import Answer, Request

Forward = Callable[[Request], Awaitable[Answer]]


class ConnectionDroppedError(Exception):
    """The client's connection is to be reset instead of answered."""


class Fault(Protocol):
    """One way to treat a call."""

    async def answer(self, request: Request, forward: Forward) -> Answer: ...


def error_answer(status: int, code: str, message: str) -> Answer:
    """An error as SQS writes it in its JSON protocol: the code in the body and, for old clients,
    in `x-amzn-query-error`."""
    sender = "Sender" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "Receiver"
    return Answer.of(
        {"__type": f"com.amazonaws.sqs#{code}", "message": message},
        status=status,
        headers={"x-amzn-query-error": f"{code};{sender}"},
    )


@dataclass(frozen=True)
class Status:
    """An error answer; the server never sees the call."""

    status: int
    code: str = ""

    async def answer(self, request: Request, forward: Forward) -> Answer:
        code = self.code or _USUAL_CODES.get(self.status, "InternalError")
        return error_answer(self.status, code, "Injected by the fault proxy.")


_USUAL_CODES = {
    400: "InvalidParameterValue",
    403: "ExpiredToken",
    429: "RequestThrottled",
    500: "InternalError",
    503: "ServiceUnavailable",
}


@dataclass(frozen=True)
class Denied:
    """What IAM answers when no policy allows the action."""

    status: int = 403

    async def answer(self, request: Request, forward: Forward) -> Answer:
        action = f"sqs:{request.action.lower()}"
        message = (
            f"User: arn:aws:sts::000000000000:assumed-role/worker is not authorized to perform: "
            f"{action} on resource: arn:aws:sqs:us-east-1:000000000000:{request.queue} "
            f"because no identity-based policy allows the {action} action"
        )
        return Answer.of(
            {"__type": "com.amazon.coral.service#AccessDeniedException", "Message": message},
            status=self.status,
            headers={"x-amzn-query-error": "AccessDenied;Sender"},
        )


@dataclass(frozen=True)
class Garbage:
    """200 with a body that is not what SQS sends, as a captive portal or a broken proxy does."""

    body: bytes = b"<html><body>Please log in</body></html>"

    async def answer(self, request: Request, forward: Forward) -> Answer:
        return Answer(200, {"Content-Type": "text/html"}, self.body)


@dataclass(frozen=True)
class Reset:
    """The connection is reset before the server sees the call."""

    async def answer(self, request: Request, forward: Forward) -> Answer:
        raise ConnectionDroppedError


@dataclass(frozen=True)
class LostAnswer:
    """The server does what was asked, and the connection is reset before the answer arrives."""

    async def answer(self, request: Request, forward: Forward) -> Answer:
        await forward(request)
        raise ConnectionDroppedError


@dataclass(frozen=True)
class CutAnswer:
    """The server does what was asked, and the answer breaks off in the middle."""

    async def answer(self, request: Request, forward: Forward) -> Answer:
        whole = await forward(request)
        return replace(whole, cut_at=len(whole.body) // 2)


@dataclass(frozen=True)
class Hang:
    """No answer, ever; the server never sees the call."""

    async def answer(self, request: Request, forward: Forward) -> Answer:
        await asyncio.Event().wait()
        raise ConnectionDroppedError


@dataclass(frozen=True)
class Slow:
    """The server does what was asked at once; its answer is held back for `seconds`."""

    seconds: float

    async def answer(self, request: Request, forward: Forward) -> Answer:
        answer = await forward(request)
        await asyncio.sleep(self.seconds)
        return answer


@dataclass(frozen=True)
class Late:
    """The request is on its way for `seconds` before it reaches the server."""

    seconds: float

    async def answer(self, request: Request, forward: Forward) -> Answer:
        await asyncio.sleep(self.seconds)
        return await forward(request)


@dataclass(frozen=True)
class FailedEntries:
    """A batch call that answers 200 with `Failed` entries in it, as SQS does.

    `which(index, entry)` picks the entries that fail; they never reach the server, the others do.
    """

    code: str = "InternalError"
    sender_fault: bool = False
    which: Callable[[int, dict[str, Any]], bool] = lambda index, entry: True

    async def answer(self, request: Request, forward: Forward) -> Answer:
        entries = request.document["Entries"]
        failing = [entry for index, entry in enumerate(entries) if self.which(index, entry)]
        passing = [entry for entry in entries if entry not in failing]
        result: dict[str, Any] = {"Successful": []}
        if passing:
            forwarded = await forward(request.with_document(Entries=passing))
            if forwarded.status != HTTPStatus.OK:
                return forwarded
            result = json.loads(forwarded.body)
        result["Failed"] = result.get("Failed", []) + [
            {
                "Id": entry["Id"],
                "Code": self.code,
                "Message": "Injected by the fault proxy.",
                "SenderFault": self.sender_fault,
            }
            for entry in failing
        ]
        return Answer.of(result)
