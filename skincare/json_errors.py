"""Below /v1 every error is a problem document, also where no route of the API answered."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from orders.problems import Problem, problem_of, problem_response

PREFIX: Final = "/v1/"
_NAMES: Final = {
    400: "bad-request",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    413: "body-too-large",
    500: "internal-error",
    503: "unavailable",
}
_KEPT_HEADERS: Final = ("Allow", "Retry-After", "WWW-Authenticate")


class JsonErrorsMiddleware:
    """Replaces Django's HTML error pages: an unknown address, a wrong method, a crash.

    A crash keeps its page where DEBUG is on.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if (
            response.status_code < 400
            or not request.path_info.startswith(PREFIX)
            or response.get("Content-Type", "").endswith("json")
            or (settings.DEBUG and response.status_code >= 500)
        ):
            return response
        answer = problem_response(request, _problem(response.status_code))
        for name in _KEPT_HEADERS:
            if name in response:
                answer[name] = response[name]
        return answer


def _problem(status: int) -> Problem:
    if status in _NAMES:
        return problem_of(_NAMES[status])
    return Problem(status=status, type="about:blank", title=HTTPStatus(status).phrase)
