"""One id for all that a request causes, in this process and in the workers."""

import re
from collections.abc import Callable
from typing import Final
from uuid import uuid4

import structlog
from django.http import HttpRequest, HttpResponse

HEADER: Final = "X-Request-ID"
#: What is taken from a client: long enough for any id, too narrow for anything else.
_ACCEPTED: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIdMiddleware:
    """Takes the caller's X-Request-ID or makes one, puts it on all log lines and in the answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        request_id = given if _ACCEPTED.fullmatch(given) else uuid4().hex
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            response = self._get_response(request)
        response[HEADER] = request_id
        return response


def current_request_id() -> str | None:
    """Return the id of the request that this code runs for; None outside of one."""
    return structlog.contextvars.get_contextvars().get("request_id")
