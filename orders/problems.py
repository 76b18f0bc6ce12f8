"""Refusals as problem documents (RFC 9457, application/problem+json)."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final, NotRequired, TypedDict

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import patch_vary_headers

from orders.problem_types import PROBLEM_TYPES
from orders.sentences import Language, in_language, language_of

CONTENT_TYPE: Final = "application/problem+json"
#: Problem types are names, not pages: RFC 9457 allows URIs that cannot be dereferenced.
TYPE_PREFIX: Final = "urn:problem-type:skincare:"


class FieldError(TypedDict):
    """One field that breaks a rule, like `items[2].quantity`, and the rule."""

    field: str
    rule: str


class ProblemDocument(TypedDict):
    """The body of a refusal."""

    type: str
    title: str
    status: int
    detail: NotRequired[str]
    errors: NotRequired[list[FieldError]]


class Problem(Exception):
    """A request that is refused, with everything that its answer says.

    `type` is the stable kebab-case name of the kind of problem (or `about:blank`), `title` its
    sentence that is the same each time, `detail` what is wrong this time, `errors` the fields to
    mend.
    """

    def __init__(
        self,
        *,
        status: int,
        type: str,  # noqa: A002 the name that RFC 9457 gives it
        title: str,
        detail: str = "",
        errors: Iterable[FieldError] = (),
    ) -> None:
        super().__init__(detail or title)
        self.status = status
        self.type = type if ":" in type else f"{TYPE_PREFIX}{type}"
        self.title = title
        self.detail = detail
        self.errors = list(errors)

    @property
    def name(self) -> str:
        """The last part of the type, by which the catalogue knows it."""
        return self.type.removeprefix(TYPE_PREFIX)

    def document(self, language: Language = "en") -> ProblemDocument:
        """Return the JSON-ready body in one of the shop's languages."""
        known = PROBLEM_TYPES.get(self.name)
        title = known.title if known and language != "en" else self.title
        document = ProblemDocument(
            type=self.type, title=in_language(title, language), status=self.status
        )
        if self.detail:
            document["detail"] = in_language(self.detail, language)
        if self.errors:
            document["errors"] = [
                {"field": error["field"], "rule": in_language(error["rule"], language)}
                for error in self.errors
            ]
        return document


def problem_of(name: str, *, detail: str = "") -> Problem:
    """Return the problem of this name, with the status and title of the catalogue."""
    known = PROBLEM_TYPES[name]
    return Problem(status=known.status, type=name, title=known.title, detail=detail)


def problem_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Return the answer for `problem`, in the language that the caller likes best."""
    language = language_of(request)
    response = JsonResponse(
        problem.document(language), status=problem.status, content_type=CONTENT_TYPE
    )
    response["Content-Language"] = language
    if problem.status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = "Bearer"
    if problem.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        response["Retry-After"] = str(settings.WEB_RETRY_AFTER_SECONDS)
    patch_vary_headers(response, ["Accept-Language"])
    return response
