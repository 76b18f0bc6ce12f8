"""The little of a web server that the simulators need: requests in, answers out, by route."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

_MAX_BODY: Final = 1 << 20  # bytes


@dataclass(frozen=True)
class Request:
    """`headers` have lower-case names; `query` and `form` hold the last value of each name."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def form(self) -> dict[str, str]:
        """What a page's form sent."""
        pairs = parse_qs(self.body.decode(errors="replace"), keep_blank_values=True)
        return {name: values[-1] for name, values in pairs.items()}

    @property
    def user(self) -> str | None:
        """The user of HTTP Basic with an empty password; None for anything else."""
        kind, _, encoded = self.headers.get("authorization", "").partition(" ")
        try:
            user, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return user if kind.lower() == "basic" and colon and not password else None

    def json(self) -> dict[str, Any]:
        """The JSON object of the body. Raises ValueError where it is not one."""
        document = json.loads(self.body or b"{}")
        if not isinstance(document, dict):
            raise ValueError("not a JSON object")
        return document


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, document: Any, status: int = 200, **headers: str) -> "Answer":
        return cls(
            status,
            json.dumps(document).encode(),
            {"Content-Type": "application/json", **headers},
        )

    @classmethod
    def html(cls, text: str, status: int = 200) -> "Answer":
        return cls(status, text.encode(), {"Content-Type": "text/html; charset=utf-8"})

    @classmethod
    def see_other(cls, url: str) -> "Answer":
        return cls(303, b"", {"Location": url})


class Refusal(Exception):
    """The answer of a call that is refused."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


View = Callable[..., Answer]


class Routes:
    """Which view answers which path; `{name}` in a path matches one segment."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, re.Pattern[str], View]] = []

    def add(self, method: str, path: str, view: View) -> None:
        parts = re.split(r"{(\w+)}", path)
        pattern = "".join(
            f"(?P<{part}>[^/]+)" if index % 2 else re.escape(part)
            for index, part in enumerate(parts)
        )
        self._routes.append((method, re.compile(pattern + "/?"), view))

    def answer(self, request: Request) -> Answer:
        for method, pattern, view in self._routes:
            match = pattern.fullmatch(request.path)
            if match and method == request.method:
                values = {name: unquote(value) for name, value in match.groupdict().items()}
                try:
                    return view(request, **values)
                except Refusal as refusal:
                    return refusal.answer
        return Answer.json({"message": "no such address"}, 404)


def serve(
    answer: Callable[[Request], Answer], port: int, *, host: str = "127.0.0.1"
) -> ThreadingHTTPServer:
    """Return a server that listens there; `serve_forever` makes it answer.

    host: another one only where a container's network is its own.
    """

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            url = urlsplit(self.path)
            given = answer(
                Request(
                    method=self.command,
                    path=url.path,
                    query={k: v[-1] for k, v in parse_qs(url.query).items()},
                    headers={name.lower(): value for name, value in self.headers.items()},
                    body=self.rfile.read(min(length, _MAX_BODY)),
                )
            )
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(given.body)))
            self.end_headers()
            self.wfile.write(given.body)

        do_GET = do_POST = _answer  # noqa: N815 the names that http.server looks for

        def log_message(self, *_: Any) -> None:
            """Say nothing: what was called is in the control API."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    return Server((host, port), Handler)
