"""Takes the shop's emails by SMTP, keeps each as an .eml file, and shows them on a page.

    python -m skincare.local.mail_server --folder FOLDER --smtp-port N --page-port N

Nothing is ever sent on.
"""

import argparse
import asyncio
import json
import signal
import threading
from datetime import UTC, datetime
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from aiosmtpd.smtp import SMTP, Envelope

from skincare.local.mailbox import kind_of, read

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
{extra}<style>
:root {{ color-scheme: light dark }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem }}
body {{ padding: 0 1rem }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ text-align: left; padding: .4rem .6rem; border-bottom: 1px solid #8884 }}
iframe {{ width: 100%; height: 70vh; border: 1px solid #8888; background: #fff }}
pre {{ white-space: pre-wrap }}
</style>
{body}</html>"""
REFRESH = '<meta http-equiv="refresh" content="5">'


class Keeper:
    """What aiosmtpd calls for each message."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def handle_DATA(self, _: Any, __: Any, envelope: Envelope) -> str:  # noqa: N802 aiosmtpd's name
        content = envelope.content or b""
        assert isinstance(content, bytes)  # noqa: S101 for the type checker: decode_data is off
        name = f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{kind_of(read(content)) or 'email'}.eml"
        # Whoever reads the folder finds whole emails only.
        half = self.folder / f".{name}"
        half.write_bytes(content)
        half.rename(self.folder / name)
        return "250 kept"


class Page(BaseHTTPRequestHandler):
    """`/` lists the emails, `/NAME.eml` shows one, `/NAME.eml/html` its HTML alone.

    Programs ask as they would ask Mailpit, which stands here in docker/compose.yaml:
    `/api/v1/search?query=subject:"…"` and `/api/v1/message/NAME.eml`.
    https://mailpit.axllent.org/docs/api-v1/
    """

    folder: Path

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        name, _, part = unquote(url.path).strip("/").partition("/")
        files = {file.name: file for file in self.folder.glob("*.eml")}
        if name == "api":
            self._answer_program(files, part, parse_qs(url.query))
        elif not name:
            self._answer(self._list(files))
        elif name not in files:
            self._answer(
                PAGE.format(title="No such email", extra="", body="<p>No such email."), 404
            )
        elif part == "html":
            message = read(files[name].read_bytes())
            html = message.get_body(("html",))
            self._answer(html.get_content() if html else "", policy="sandbox")
        else:
            self._answer(self._show(files[name]))

    def _answer_program(
        self, files: dict[str, Path], path: str, query: dict[str, list[str]]
    ) -> None:
        name = path.removeprefix("v1/message/")
        if path == "v1/search":
            words = query.get("query", [""])[0].removeprefix("subject:").strip('"')
            found = [summary(file) for _, file in sorted(files.items(), reverse=True)]
            found = [one for one in found if words in one["Subject"]]
            self._answer_json({"messages": found, "messages_count": len(found)})
        elif name in files:
            message = read(files[name].read_bytes())
            html, plain = message.get_body(("html",)), message.get_body(("plain",))
            self._answer_json(
                {
                    **summary(files[name]),
                    "HTML": html.get_content() if html else "",
                    "Text": plain.get_content() if plain else "",
                }
            )
        else:
            self._answer_json({"Error": "no such message"}, 404)

    def _list(self, files: dict[str, Path]) -> str:
        rows = ""
        for name, file in sorted(files.items(), reverse=True):
            message = read(file.read_bytes())
            rows += (
                f"<tr><td>{escape(str(message['Date']))}<td>{escape(str(message['To']))}"
                f'<td><a href="/{escape(name)}">{escape(str(message["Subject"]))}</a>'
            )
        body = f"<h1>The shop's emails</h1><p>{len(files)} in {escape(str(self.folder))}."
        if rows:
            body += f"<table><tr><th>Sent<th>To<th>Subject{rows}</table>"
        return PAGE.format(title="The shop's emails", extra=REFRESH, body=body)

    def _show(self, file: Path) -> str:
        message = read(file.read_bytes())
        subject = escape(str(message["Subject"]))
        body = f'<p><a href="/">All emails</a><h1>{subject}</h1><table>'
        for header in ("From", "To", "Date", "Message-ID"):
            body += f"<tr><th>{header}<td>{escape(str(message[header]))}"
        body += "</table>"
        if message.get_body(("html",)):
            source = f"/{escape(file.name)}/html"
            body += f'<h2>HTML</h2><iframe title="HTML" sandbox src="{source}"></iframe>'
        if plain := message.get_body(("plain",)):
            body += f"<h2>Plain text</h2><pre>{escape(plain.get_content())}</pre>"
        body += f"<p>File: {escape(str(file))}"
        return PAGE.format(title=subject, extra="", body=body)

    def _answer_json(self, document: dict[str, Any], status: int = 200) -> None:
        self._answer(json.dumps(document), status, kind="application/json")

    def _answer(
        self, page: str, status: int = 200, policy: str = "", kind: str = "text/html; charset=utf-8"
    ) -> None:
        content = page.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if policy:
            self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing of each request."""


def summary(file: Path) -> dict[str, Any]:
    """What a list says of an email."""
    message = read(file.read_bytes())
    return {"ID": file.name, "Subject": str(message["Subject"]), "Date": str(message["Date"])}


async def serve(folder: Path, *, host: str, smtp_port: int, page_port: int) -> None:
    """Serve until SIGTERM or SIGINT."""
    folder.mkdir(parents=True, exist_ok=True)
    handler = type("FolderPage", (Page,), {"folder": folder})
    page = ThreadingHTTPServer((host, page_port), handler)
    threading.Thread(target=page.serve_forever, daemon=True).start()
    loop = asyncio.get_running_loop()
    keeper = Keeper(folder)
    smtp = await loop.create_server(
        lambda: SMTP(keeper, hostname="localhost", enable_SMTPUTF8=True), host, smtp_port
    )
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    print(f"SMTP at {host}:{smtp_port}, page at http://{host}:{page_port}/", flush=True)
    await stopped.wait()
    smtp.close()
    page.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--host", default="127.0.0.1", help="default: %(default)s")
    parser.add_argument("--smtp-port", type=int, required=True)
    parser.add_argument("--page-port", type=int, required=True)
    options = parser.parse_args()
    asyncio.run(
        serve(
            options.folder,
            host=options.host,
            smtp_port=options.smtp_port,
            page_port=options.page_port,
        )
    )


if __name__ == "__main__":
    main()
