"""The admin speaks one language: the one that the shop's own pages for operators are written in."""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils import translation

from skincare.admin_door import PREFIX

LANGUAGE: Final = "en"


class EnglishAdminMiddleware:
    """Answer requests below /admin/ in English; buyers' texts keep their own language."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith(PREFIX):
            return self._get_response(request)
        with translation.override(LANGUAGE):
            return self._get_response(request)
