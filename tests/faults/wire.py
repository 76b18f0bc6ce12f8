"""Just enough HTTP/1.1 to pass SQS calls through and to read which action and queue they name."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Request:
    """One call, with its bytes as they came."""

    raw: bytes
    action: str
    queue: str
    document: dict[str, Any] = field(default_factory=dict)
    access_key: str = ""
    """The AWS access key id that signed the call."""

    @classmethod
    def parse(cls, head: bytes, body: bytes) -> Self:
        """Reads the JSON protocol (`X-Amz-Target: AmazonSQS.<Action>`) and the older query one
        (`Action=<Action>`). Anything else is passed through with an empty action."""
        line, headers = parse_head(head)
        target = headers.get("x-amz-target", "")
        if target:
            document = json.loads(body or b"{}")
            action = target.rpartition(".")[2]
        else:
            url = urlsplit(line.split(" ")[1])
            document = dict(parse_qsl(url.query)) | dict(parse_qsl(body.decode("latin-1")))
            document.setdefault("QueueUrl", url.path)
            action = document.get("Action", "")
        queue = document.get("QueueName") or document.get("QueueUrl", "")
        signer = headers.get("authorization", "").partition("Credential=")[2]
        access_key = signer.partition("/")[0]
        return cls(head + body, action, queue_name(queue), document, access_key)

    def with_document(self, **changes: Any) -> Request:
        """The same call with keys of its JSON document replaced. Local servers check no
        signature."""
        document = self.document | changes
        body = json.dumps(document).encode()
        lines = self.raw.partition(b"\r\n\r\n")[0].split(b"\r\n")
        kept = [line for line in lines if not line.lower().startswith(b"content-length:")]
        head = b"\r\n".join([*kept, b"Content-Length: %d" % len(body)]) + b"\r\n\r\n"
        return replace(self, raw=head + body, document=document)


@dataclass(frozen=True)
class Answer:
    """One answer. `raw` is set when it came from the server and goes on byte for byte."""

    status: int
    headers: dict[str, str]
    body: bytes
    raw: bytes | None = None
    cut_at: int | None = None

    @classmethod
    def of(
        cls, document: dict[str, Any], *, status: int = 200, headers: dict[str, str] | None = None
    ) -> Self:
        return cls(
            status,
            {"Content-Type": "application/x-amz-json-1.0"} | (headers or {}),
            json.dumps(document).encode(),
        )

    def to_bytes(self) -> bytes:
        whole = self.raw
        if whole is None:
            reason = HTTPStatus(self.status).phrase
            headers = {**self.headers, "Content-Length": str(len(self.body))}
            lines = [f"HTTP/1.1 {self.status} {reason}"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            whole = "\r\n".join([*lines, "", ""]).encode() + self.body
        if self.cut_at is None:
            return whole
        return whole[: len(whole) - len(self.body) + self.cut_at]


def queue_name(url: str) -> str:
    """The last part of a queue's URL; a bare name stays as it is."""
    return url.rstrip("/").rpartition("/")[2]


def parse_head(head: bytes) -> tuple[str, dict[str, str]]:
    """First line and headers (names in lower case) of a request or an answer."""
    first, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in rest)
    return first, {name.strip().lower(): value.strip() for name, _, value in pairs}


async def read_request(reader: asyncio.StreamReader) -> Request:
    """Raises asyncio.IncompleteReadError when the client has closed the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    _, headers = parse_head(head)
    return Request.parse(head, await reader.readexactly(int(headers.get("content-length", 0))))


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """Raises asyncio.IncompleteReadError when the server has closed the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    line, headers = parse_head(head)
    if headers.get("transfer-encoding", "").lower() == "chunked":
        coded = body = b""
        while True:
            size_line = await reader.readuntil(b"\r\n")
            chunk = await reader.readexactly(int(size_line, 16) + 2)
            coded += size_line + chunk
            body += chunk[:-2]
            if chunk == b"\r\n":
                break
    else:
        coded = body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Answer(int(line.split(" ")[1]), headers, body, raw=head + coded)
