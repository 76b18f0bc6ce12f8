"""The shop's routes: checkout, one order, the catalogue, and what a client chooses from."""

import re
from typing import Annotated, Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Path, Query, Router, Status

from orders import exceptions, payment_methods, problem_types
from orders.buyers import InvalidToken, buyer_of
from orders.checkout import Item, Placed, place_order
from orders.models import SKU_PATTERN, Category, Order, Product
from orders.problems import Problem, problem_of
from orders.schemas import (
    CategoriesOut,
    CheckoutIn,
    CheckoutOut,
    OrderOut,
    PaymentMethodsOut,
    ProblemOut,
    ProblemTypesOut,
    ProductOut,
    ProductsOut,
)
from orders.search import search_products
from orders.sentences import Sentence, in_language, language_of

router = Router(tags=["shop"])

#: What a refusal of checkout is answered with; the rest is 422.
_STATUS: Final[dict[type[exceptions.CheckoutRefused], int]] = {
    exceptions.MissingIdempotencyKey: 400,
    exceptions.InvalidIdempotencyKey: 400,
    exceptions.IdempotencyKeyReused: 409,
    exceptions.NotEnoughStock: 409,
    exceptions.TooManyUnpaid: 429,
}

IDEMPOTENCY_KEY: Final[dict[str, Any]] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": True,
    "description": "A value of your own, new for each order. The same key with the same body gets "
    "the same answer again, and makes no second order; with another body it is refused.",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": settings.IDEMPOTENCY_KEY_MAX_LENGTH,
        "pattern": "^[\\x21-\\x7e]+$",
    },
}


@router.post(
    "/checkout",
    response={201: CheckoutOut, (400, 401, 409, 413, 422, 429, 503): ProblemOut},
    summary="Order a cart",
    openapi_extra={
        "parameters": [IDEMPOTENCY_KEY],
        "security": [{}, {"buyer": []}],
        "x-problems": [
            *("unreadable-body", "missing-idempotency-key", "invalid-idempotency-key"),
            *("invalid-token", "idempotency-key-reused", "not-enough-stock", "body-too-large"),
            *("invalid-request", "empty-cart", "too-many-lines", "quantity-out-of-range"),
            *("duplicate-sku", "unknown-sku", "invalid-email", "unknown-payment-method"),
            "too-many-unpaid",
        ],
        "responses": {
            201: {
                "links": {
                    "order": {
                        "operationId": "orders_api_order",
                        "parameters": {"order_id": "$response.body#/order_id"},
                    },
                    "payment page": {
                        "operationId": "payments_api_pay",
                        "parameters": {"order_id": "$response.body#/order_id"},
                    },
                }
            }
        },
    },
)
def checkout(request: HttpRequest, response: HttpResponse, payload: CheckoutIn) -> Status[Placed]:
    """Reserve the stock and make the order; what is slow follows later.

    A bearer token of the shop's login makes it the buyer's order; without one it is a guest's.

    `400` for the Idempotency-Key header, `401` for a token that proves nothing, `409` where
    the key was used for another body or the stock is not enough, `422` for a field that breaks its
    rule.
    """
    try:
        placed = place_order(
            items=[Item(sku=item.sku, quantity=item.quantity) for item in payload.items],
            email=payload.email,
            payment_method=payload.payment_method,
            idempotency_key=request.headers.get("Idempotency-Key"),
            user_id=buyer_of(request),
            language=payload.language,
            address=request.META.get("REMOTE_ADDR", ""),
        )
    except exceptions.CheckoutRefused as refusal:
        raise _problem(refusal) from refusal
    except InvalidToken as refusal:
        raise problem_of("invalid-token", detail=str(refusal)) from refusal
    response["Location"] = reverse("v1:order", args=[placed.order_id])
    return Status(201, placed)


@router.get(
    "/orders/{order_id}",
    response={200: OrderOut, (404, 422): ProblemOut},
    summary="Look at an order",
    url_name="order",
    openapi_extra={"x-problems": ["order-not-found", "invalid-request"]},
)
def order(request: HttpRequest, order_id: UUID) -> Order:
    """Return the order. Its id cannot be guessed: who knows it may see it."""
    found = Order.objects.prefetch_related("lines", "payments").filter(pk=order_id).first()
    if found is None:
        detail = Sentence(
            "No order has the id {id}.", "Tidak ada pesanan dengan id {id}.", id=order_id
        )
        raise problem_of("order-not-found", detail=detail)
    return found


@router.get(
    "/products",
    response={200: ProductsOut, 422: ProblemOut},
    summary="Search the catalogue",
    openapi_extra={"x-problems": ["invalid-request"]},
)
def products(
    request: HttpRequest,
    q: Annotated[str, Query(max_length=200, description="words; none for all products")] = "",
    category: Annotated[
        Category | None, Query(description="only these; see /v1/categories")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
) -> dict[str, Any]:
    """Return the products that match, best first, those that are sold out last."""
    found = search_products(q)
    if category is not None:
        found = found.filter(category=category)
    return {
        "items": found[offset : offset + limit],
        "total": found.count(),
        "limit": limit,
        "offset": offset,
    }


@router.get(
    "/products/{sku}",
    response={200: ProductOut, (404, 422): ProblemOut},
    summary="Look at a product",
    openapi_extra={"x-problems": ["product-not-found", "invalid-request"]},
)
def product(request: HttpRequest, sku: Annotated[str, Path(max_length=40)]) -> Product:
    """Return the product, sold out or not; one that is no longer shown is not there."""
    # PostgreSQL takes no NUL, so what cannot be a sku is not asked for.
    shown = Product.objects.filter(is_active=True)
    found = shown.filter(sku=sku).first() if re.match(SKU_PATTERN, sku) else None
    if found is None:
        raise problem_of("product-not-found")
    return found


@router.get("/categories", response=CategoriesOut, summary="List the categories")
def categories(request: HttpRequest) -> dict[str, Any]:
    """Return the categories that have products, in the order of a routine."""
    shown = Product.objects.filter(is_active=True).order_by()
    counts = dict(shown.values_list("category").annotate(products=Count("pk")))
    return {
        "items": [
            {"name": one, "label": one.label, "products": counts[one]}
            for one in Category
            if counts.get(one)
        ]
    }


@router.get("/payment-methods", response=PaymentMethodsOut, summary="List the ways to pay")
def ways_to_pay(request: HttpRequest) -> dict[str, Any]:
    """Return what `payment_method` of a checkout may be."""
    language = language_of(request)
    methods = [payment_methods.get(name) for name in payment_methods.enabled()]
    return {
        "items": [{"name": one.name, "label": in_language(one.label, language)} for one in methods]
    }


@router.get("/problems", response=ProblemTypesOut, summary="List the kinds of problems")
def problem_kinds(request: HttpRequest) -> dict[str, Any]:
    """Return every kind of problem that this API answers with, and what to do then."""
    return {"items": problem_types.rows()}


def _problem(refusal: exceptions.CheckoutRefused) -> Problem:
    """Return the problem of a refusal: its class names the kind, its docstring is the title."""
    kind = type(refusal)
    return Problem(
        status=_STATUS.get(kind, 422),
        type=re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower(),
        title=kind.__doc__ or kind.__name__,
        detail=refusal.detail,
        errors=[{"field": refusal.where, "rule": refusal.rule}],
    )
