"""The shop's routes: checkout, one order, the catalogue's search."""

import re
from typing import Annotated, Any, Final
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router, Status

from orders import exceptions
from orders.checkout import Item, Placed, place_order
from orders.models import GUEST, Order
from orders.problems import Problem
from orders.schemas import CheckoutIn, CheckoutOut, OrderOut, ProblemOut, ProductsOut
from orders.search import search_products

router = Router(tags=["shop"])

#: What a refusal of checkout is answered with; the rest is 422.
_STATUS: Final[dict[type[exceptions.CheckoutRefused], int]] = {
    exceptions.MissingIdempotencyKey: 400,
    exceptions.InvalidIdempotencyKey: 400,
    exceptions.IdempotencyKeyReused: 409,
    exceptions.NotEnoughStock: 409,
}

_IDEMPOTENCY_KEY: Final[dict[str, Any]] = {
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
    response={201: CheckoutOut, (400, 409, 422): ProblemOut},
    summary="Order a cart",
    openapi_extra={"parameters": [_IDEMPOTENCY_KEY]},
)
def checkout(request: HttpRequest, response: HttpResponse, payload: CheckoutIn) -> Status[Placed]:
    """Reserve the stock and make the order; what is slow follows later.

    `400` for the Idempotency-Key header, `409` where the key was used for another body or the
    stock is not enough, `422` for a field that breaks its rule.
    """
    try:
        placed = place_order(
            items=[Item(sku=item.sku, quantity=item.quantity) for item in payload.items],
            email=payload.email,
            payment_method=payload.payment_method,
            idempotency_key=request.headers.get("Idempotency-Key"),
            user_id=str(request.user.pk) if request.user.is_authenticated else GUEST,
            language=payload.language,
        )
    except exceptions.CheckoutRefused as refusal:
        raise _problem(refusal) from refusal
    response["Location"] = reverse("v1:order", args=[placed.order_id])
    return Status(201, placed)


@router.get(
    "/orders/{order_id}",
    response={200: OrderOut, (404, 422): ProblemOut},
    summary="Look at an order",
    url_name="order",
)
def order(request: HttpRequest, order_id: UUID) -> Order:
    """Return the order. Its id cannot be guessed: who knows it may see it."""
    found = Order.objects.prefetch_related("lines").filter(pk=order_id).first()
    if found is None:
        raise Problem(
            status=404,
            type="order-not-found",
            title="There is no such order.",
            detail=f"No order has the id {order_id}.",
        )
    return found


@router.get(
    "/products",
    response={200: ProductsOut, 422: ProblemOut},
    summary="Search the catalogue",
)
def products(
    request: HttpRequest,
    q: Annotated[str, Query(max_length=200, description="words; none for all products")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    offset: Annotated[int, Query(ge=0, le=100_000)] = 0,
) -> dict[str, Any]:
    """Return the products that match, best first, those that are sold out last."""
    found = search_products(q)
    return {
        "items": found[offset : offset + limit],
        "total": found.count(),
        "limit": limit,
        "offset": offset,
    }


def _problem(refusal: exceptions.CheckoutRefused) -> Problem:
    """Return the problem of a refusal: its class names the kind, its docstring is the title."""
    kind = type(refusal)
    return Problem(
        status=_STATUS.get(kind, 422),
        type=re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower(),
        title=kind.__doc__ or kind.__name__,
        detail=str(refusal),
        errors=[{"field": refusal.where, "rule": refusal.rule}],
    )
