"""The public API: the apps' routes under one OpenAPI document, errors as RFC 9457 problems."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema

from orders.api import router as orders_router
from orders.problems import CONTENT_TYPE, Problem, problem_response
from payments.api import router as payments_router


class ShopAPI(NinjaAPI):
    """django-ninja, but for one thing: refusals are documented as the problems that they are."""

    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**kwargs)
        for methods in schema["paths"].values():
            for operation in methods.values():
                for status, answer in operation["responses"].items():
                    if int(status) >= 400 and "content" in answer:
                        answer["content"] = {CONTENT_TYPE: answer["content"]["application/json"]}
        return schema


api = ShopAPI(
    title="Skincare order events",
    version="1",
    description="Checkout, orders and products of a skincare shop, and its gateways' webhooks.",
    openapi_url="/openapi.json",
    docs_url="/docs",
    urls_namespace="v1",
)
api.add_router("", orders_router)
api.add_router("", payments_router)


@api.exception_handler(Problem)
def problem(request: HttpRequest, error: Problem) -> HttpResponse:
    return problem_response(request, error)


@api.exception_handler(ValidationError)
def invalid_request(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Name each field that breaks a rule: `body.items.0.quantity` becomes `items[0].quantity`."""
    return problem_response(
        request,
        Problem(
            status=422,
            type="invalid-request",
            title="The request breaks the rules of its fields.",
            errors=[{"field": _field(item["loc"]), "rule": item["msg"]} for item in error.errors],
        ),
    )


@api.exception_handler(HttpError)
def http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return problem_response(
        request, Problem(status=error.status_code, type="about:blank", title=str(error))
    )


def _field(location: tuple[Any, ...]) -> str:
    # django-ninja puts the source and the parameter's name before the field.
    path = [part for part in location if part not in ("body", "query", "path", "header", "payload")]
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return name.lstrip(".") or "body"
