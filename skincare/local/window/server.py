"""The window's files, and the emails of an order, which the mail server has."""

import json
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, build_opener

from skincare.local.gateways.web import Answer, Request, Routes, serve

_FOLDER: Final = Path(__file__).parent
_FILES: Final = {"window.js": "text/javascript", "window.css": "text/css"}
_MAIL_SECONDS: Final = 5.0

#: Ask the mail server on this machine, whatever proxies the environment names.
_open = build_opener(ProxyHandler({})).open


class Window:
    """Listens from its start; `run` makes it answer."""

    def __init__(self, *, api_url: str, mail_url: str, host: str = "127.0.0.1", port: int = 0):
        """api_url: of the shop, as a browser reaches it. mail_url: of the mail server's page.

        port: 0 for one that is free.
        """
        self._api_url = api_url.rstrip("/")
        self._mail_url = mail_url.rstrip("/")
        routes = Routes()
        for path in ("/", "/orders/{id}"):
            routes.add("GET", path, self.page)
        for name, kind in _FILES.items():
            routes.add("GET", f"/{name}", file_view(name, kind))
        routes.add("GET", "/emails", self.emails)
        routes.add("GET", "/emails/{id}", self.email)
        self._routes = routes
        self._server = serve(self._answer, port, host=host)
        self.port: int = self._server.server_address[1]

    def run(self) -> None:
        self._server.serve_forever()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: Request) -> Answer:
        if request.path.startswith("/static/"):  # the emails' pictures are below SHOP_URL
            return Answer.see_other(self._api_url + request.path)
        return self._routes.answer(request)

    def page(self, request: Request, id: str = "") -> Answer:  # noqa: A002 the path's name
        """Every address is the same page; its script shows the shop or the order."""
        text = (_FOLDER / "window.html").read_text()
        answer = Answer.html(text.replace("{{ api }}", escape(self._api_url)))
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; frame-src 'self'; "
            f"img-src 'self' data: https: {self._api_url}; connect-src 'self' {self._api_url}; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return with_policy(answer, policy)

    def emails(self, request: Request) -> Answer:
        """The emails about the order with this number, newest first."""
        number = request.query.get("order", "")
        query = urlencode({"query": f'subject:"{number}"'})
        try:
            found = self._ask(f"/api/v1/search?{query}")["messages"] if number else []
        except (URLError, ValueError, KeyError) as error:
            return Answer.json({"message": f"The mail server does not answer: {error}"}, 502)
        emails = [{"id": one["ID"], "subject": one["Subject"]} for one in found]
        return Answer.json({"items": emails})

    def email(self, request: Request, id: str) -> Answer:  # noqa: A002 the path's name
        """One email's HTML. It runs nothing, and its links lead the whole window."""
        try:
            html = self._ask(f"/api/v1/message/{quote(id, safe='')}")["HTML"]
        except HTTPError as error:
            error.close()
            return Answer.json({"message": "no such email"}, 404)
        except (URLError, ValueError, KeyError) as error:
            return Answer.json({"message": f"The mail server does not answer: {error}"}, 502)
        whole = html.replace("<head>", '<head><base target="_top">', 1)
        policy = (
            "sandbox allow-top-navigation-by-user-activation; default-src 'none'; "
            f"style-src 'unsafe-inline'; img-src 'self' https: {self._api_url}"
        )
        return with_policy(Answer.html(whole), policy)

    def _ask(self, path: str) -> Any:
        with _open(f"{self._mail_url}{path}", timeout=_MAIL_SECONDS) as answer:
            return json.load(answer)


def file_view(name: str, kind: str) -> Callable[[Request], Answer]:
    def view(request: Request) -> Answer:
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Cache-Control": "no-cache"}
        return Answer(200, (_FOLDER / name).read_bytes(), headers)

    return view


def with_policy(answer: Answer, policy: str) -> Answer:
    headers = {
        **answer.headers,
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }
    return Answer(answer.status, answer.body, headers)
