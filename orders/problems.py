"""Refusals as problem documents (RFC 9457, application/problem+json)."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NotRequired, TypedDict

from django.http import HttpRequest, HttpResponse, JsonResponse

CONTENT_TYPE: Final = "application/problem+json"
#: Problem types are names, not pages: RFC 9457 allows URIs that cannot be dereferenced.
_TYPE_PREFIX: Final = "urn:problem-type:skincare:"

#: Where ninja says an input came from; the caller knows it as the field alone.
_SOURCES: Final = frozenset({"body", "query", "path", "header", "cookie", "form", "file"})


class FieldError(TypedDict):
    """One field that breaks a rule, like `items[2].quantity`, and the rule."""

    field: str
    rule: str


class ProblemDocument(TypedDict):
    """The body of a refusal."""

    type: str
    title: str
    status: int
    detail: str
    errors: NotRequired[list[FieldError]]


class Problem(Exception):
    """A request that is refused, with all that the caller is told.

    `name` is the stable kebab-case name of the kind of problem, `title` its one sentence that is
    the same each time, `detail` what is wrong this time, `errors` the fields to mend.
    """

    def __init__(
        self,
        *,
        status: int,
        name: str,
        title: str,
        detail: str,
        errors: Iterable[FieldError] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.type = f"{_TYPE_PREFIX}{name}"
        self.title = title
        self.detail = detail
        self.errors = list(errors)

    def document(self) -> ProblemDocument:
        """Return the JSON-ready body."""
        document = ProblemDocument(
            type=self.type, title=self.title, status=self.status, detail=self.detail
        )
        if self.errors:
            document["errors"] = self.errors
        return document


def problem_response(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Return the answer for `problem`."""
    return JsonResponse(problem.document(), status=problem.status, content_type=CONTENT_TYPE)


def field_name(location: Sequence[str | int]) -> str:
    """Return a pydantic location in the caller's words: `items[2].quantity`.

    ninja puts the source and the name of the view's argument first; both are ours, not the
    caller's.
    """
    parts = list(location)
    source = parts.pop(0) if parts and parts[0] in _SOURCES else None
    if source == "body" and parts:
        parts.pop(0)
    name = ""
    for part in parts:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else str(part)
    return name or str(source or "body")


def invalid_input(errors: Iterable[dict[str, Any]]) -> Problem:
    """Return the 422 problem for the errors of a ninja or pydantic validation."""
    fields = [
        FieldError(field=field_name(error["loc"]), rule=str(error["msg"])) for error in errors
    ]
    return Problem(
        status=422,
        name="invalid-input",
        title="A field is missing or malformed.",
        detail="; ".join(f"{error['field']}: {error['rule']}" for error in fields),
        errors=fields,
    )
