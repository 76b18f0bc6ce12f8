"""What is decided about a request before any view, and what is said when its work cannot be done.

All of it is what anybody can send, so none of it is an error of ours: a line of level info, nothing
to Sentry.
"""

from collections.abc import Callable
from typing import Final

import structlog
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, QueryDict

from orders.problems import Problem, problem_of, problem_response
from skincare.events.database_sessions import gave_up, is_away
from skincare.request_limits import is_too_often

log = structlog.get_logger(__name__)

API: Final = "/v1/"


class FrontDoorMiddleware:
    """Refuses what no view could take, and answers 503 for a database that is busy or away."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        problem = _refusal(request)
        if problem is not None:
            log.info("request_refused", refusal=problem.name)
            return problem_response(request, problem)
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer for the database; any other error is Django's."""
        if not isinstance(error, OperationalError | InterfaceError) and not is_away(error):
            return None
        if gave_up(error):
            log.warning("database_too_slow", error=type(error.__cause__).__name__)
        else:
            log.error("database_unavailable", error=type(error).__name__, exc_info=error)
        return problem_response(request, problem_of("unavailable"))


def _refusal(request: HttpRequest) -> Problem | None:
    try:
        request.get_host()
    except DisallowedHost:
        return problem_of("unknown-host")
    if is_too_often(request):
        return problem_of("too-many-requests")
    if request.path.startswith("/v1/webhooks/"):
        return None  # counted by their view, which refuses by itself
    # The web server knows the length of every body, also of one that came in chunks.
    length = request.headers.get("Content-Length") or "0"
    if not length.isdecimal() or int(length) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        return problem_of("body-too-large")
    if request.path.startswith(API):
        return None  # its fields are checked one by one
    if "\0" in request.path or _hold_nul(request.GET) or _hold_nul(request.POST):
        return problem_of("bad-request")
    return None


def _hold_nul(fields: QueryDict) -> bool:
    return any("\0" in text for name, texts in fields.lists() for text in (name, *texts))
