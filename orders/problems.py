"""Refusals as problem documents (RFC 9457, application/problem+json)."""

from collections.abc import Iterable
from typing import Final, NotRequired, TypedDict

from django.http import HttpRequest, HttpResponse, JsonResponse

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
    """A request that is refused, with all that the caller is told.

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

    def document(self) -> ProblemDocument:
        """Return the JSON-ready body."""
        document = ProblemDocument(type=self.type, title=self.title, status=self.status)
        if self.detail:
            document["detail"] = self.detail
        if self.errors:
            document["errors"] = self.errors
        return document


def problem_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Return the answer for `problem`."""
    return JsonResponse(problem.document(), status=problem.status, content_type=CONTENT_TYPE)
