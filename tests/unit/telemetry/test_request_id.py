"""A request's id is the caller's where it can be one, else a new one."""

import pytest
import structlog
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from skincare.telemetry.request_id import RequestIdMiddleware, current_request_id


def seen_and_answered(headers: dict[str, str]) -> tuple[str | None, str]:
    seen = []

    def view(request: HttpRequest) -> HttpResponse:
        seen.append(current_request_id())
        return HttpResponse()

    response = RequestIdMiddleware(view)(RequestFactory().get("/", headers=headers))
    return seen[0], response["X-Request-ID"]


def test_the_callers_id_is_taken() -> None:
    assert seen_and_answered({"X-Request-ID": "lb-1.a_B"}) == ("lb-1.a_B", "lb-1.a_B")


@pytest.mark.parametrize("given", ["", "a b", "ayu@mail.example", "x" * 65, 'a"b', "é"])
def test_what_cannot_be_an_id_is_replaced(given: str) -> None:
    seen, answered = seen_and_answered({"X-Request-ID": given})

    assert seen == answered
    assert len(answered) == 32
    assert answered.isalnum()


def test_each_request_gets_its_own_id_and_leaves_none_behind() -> None:
    first, second = seen_and_answered({}), seen_and_answered({})

    assert first != second
    assert structlog.contextvars.get_contextvars() == {}
