"""A Sentry server as far as a client sees it: takes envelopes and keeps the reports in them."""

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class SentryServer:
    """Listens on a free port of 127.0.0.1. A context manager."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []
        reports = self.reports

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                reports.extend(_reports(body))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: Any) -> None:
                """Nothing: the tests look at the reports."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.dsn = f"http://key@127.0.0.1:{self._server.server_port}/1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _reports(envelope: bytes) -> list[dict[str, Any]]:
    """A header, then pairs of header and item: https://develop.sentry.dev/sdk/data-model/envelopes/."""
    lines = [json.loads(line) for line in envelope.splitlines()[1:] if line]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    kinds = [(header["type"], item) for header, item in pairs]
    return [item if kind == "event" else {"unexpected": kind} for kind, item in kinds]
