"""The public API: the apps' routes under one OpenAPI document, errors as RFC 9457 problems."""

from http import HTTPStatus
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema

from orders.api import router as orders_router
from orders.problem_types import PROBLEM_TYPES
from orders.problems import CONTENT_TYPE, Problem, problem_of, problem_response
from orders.sentences import Sentence
from payments.api import router as payments_router
from skincare.api_examples import ANSWERS, PARAMETERS, REQUESTS, problem_example
from skincare.json_body import StrictParser

#: What any route can be answered with, before its view: the kind of problem → its status.
EVERYWHERE: Final = {
    name: PROBLEM_TYPES[name].status for name in ("too-many-requests", "unavailable")
}


_RETRY_AFTER: Final = {"description": "seconds", "schema": {"type": "integer", "minimum": 1}}


class ShopAPI(NinjaAPI):
    """django-ninja, except for its document: refusals are documented as problems, and everything
    that is sent has an example.
    """

    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**kwargs)
        for path, methods in schema["paths"].items():
            for method, operation in methods.items():
                name = f"{method.upper()} {path.removeprefix('/v1')}"
                problems = [*operation.pop("x-problems", []), *EVERYWHERE]
                for status in EVERYWHERE.values():
                    operation["responses"].setdefault(status, _a_problem())
                _give_examples(name, operation)
                _document_problems(operation, problems)
        return schema


def _a_problem() -> dict[str, Any]:
    """Return an answer as django-ninja documents one; `_document_problems` fills it."""
    schema = {"$ref": "#/components/schemas/ProblemOut"}
    return {"content": {"application/json": {"schema": schema}}}


def _give_examples(name: str, operation: dict[str, Any]) -> None:
    if name in REQUESTS:
        operation["requestBody"]["content"]["application/json"]["example"] = REQUESTS[name]
    for parameter in operation.get("parameters", []):
        if parameter["name"] in PARAMETERS:
            parameter["example"] = PARAMETERS[parameter["name"]]
    for status, answer in operation["responses"].items():
        if int(status) < 400 and "content" in answer:
            answer["content"]["application/json"]["example"] = ANSWERS[name]


def _document_problems(operation: dict[str, Any], names: list[str]) -> None:
    for status, answer in operation["responses"].items():
        if int(status) >= 400 and "content" in answer:
            examples = {
                name: {"summary": PROBLEM_TYPES[name].title, "value": problem_example(name)}
                for name in names
                if PROBLEM_TYPES[name].status == int(status)
            }
            answer["description"] = HTTPStatus(int(status)).phrase
            if int(status) in EVERYWHERE.values():
                answer["headers"] = {"Retry-After": _RETRY_AFTER}
            answer["content"] = {
                CONTENT_TYPE: {**answer["content"]["application/json"], "examples": examples}
            }


api = ShopAPI(
    title="Skincare order events",
    version="1",
    description="Checkout, orders and products of a skincare shop, and its gateways' webhooks.",
    openapi_url="/openapi.json",
    docs_url="/docs",
    urls_namespace="v1",
    parser=StrictParser(),
    openapi_extra={
        "components": {
            "securitySchemes": {
                "buyer": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "A token of the shop's login, signed with HS256: `sub` is the "
                    "buyer's id, `aud` is skincare-shop, `exp` is required. Accounts live there, "
                    "not in this API. Without a token the buyer is a guest.",
                }
            }
        }
    },
)
api.add_router("", orders_router)
api.add_router("", payments_router)


@api.exception_handler(Problem)
def problem(request: HttpRequest, error: Problem) -> HttpResponse:
    return problem_response(request, error)


@api.exception_handler(ValidationError)
def invalid_request(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Name each field that breaks a rule: `body.items.0.quantity` becomes `items[0].quantity`."""
    kind = PROBLEM_TYPES["invalid-request"]
    return problem_response(
        request,
        Problem(
            status=kind.status,
            type=kind.name,
            title=kind.title,
            errors=[{"field": _field(item["loc"]), "rule": _rule(item)} for item in error.errors],
        ),
    )


@api.exception_handler(HttpError)
def http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    """django-ninja raises it for a body that it cannot read."""
    if error.status_code == 400:
        return problem_response(request, problem_of("unreadable-body"))
    return problem_response(
        request, Problem(status=error.status_code, type="about:blank", title=str(error))
    )


@api.exception_handler(RequestDataTooBig)
def too_large(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return problem_response(request, problem_of("body-too-large"))


#: pydantic's rules that our fields have, by the type of the error; its context fills them.
#: https://docs.pydantic.dev/latest/errors/validation_errors/
_IN_INDONESIAN: Final[dict[str, str]] = {
    "missing": "harus diisi",
    "extra_forbidden": "tidak dikenal",
    "string_type": "harus berupa teks",
    "string_too_long": "paling panjang {max_length} karakter",
    "int_type": "harus bilangan bulat",
    "int_parsing": "harus bilangan bulat",
    "int_parsing_size": "bilangan terlalu besar",
    "int_from_float": "harus bilangan bulat",
    "greater_than_equal": "paling kecil {ge}",
    "less_than_equal": "paling besar {le}",
    "literal_error": "harus salah satu dari: {expected}",
    "enum": "harus salah satu dari: {expected}",
    "list_type": "harus berupa daftar",
    "model_attributes_type": "harus berupa objek",
    "model_type": "harus berupa objek",
    "dict_type": "harus berupa objek",
    "uuid_parsing": "harus berupa UUID",
    "uuid_type": "harus berupa UUID",
    "string_unicode": "harus berupa teks UTF-8",
}


def _rule(item: dict[str, Any]) -> str:
    english = item["msg"].replace("{", "{{").replace("}", "}}")
    indonesian = _IN_INDONESIAN.get(item["type"], english)
    return Sentence(english, indonesian, **item.get("ctx", {}))


def _field(location: tuple[Any, ...]) -> str:
    # django-ninja puts the source and the parameter's name before the field.
    path = [part for part in location if part not in ("body", "query", "path", "header", "payload")]
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return name.lstrip(".") or "body"
