"""The gateways' webhooks: verify, parse, one service, a status code.

What the gateways make of the answers: 2xx ends it; both call again after any other. Midtrans after
2, 10, 30 and 90 minutes for 503, twice for 400, once for 500; Xendit up to six times in 24 h.
"""

import math
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import structlog
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse
from ninja import Field, Router, Schema, Status
from pydantic import ConfigDict

from orders.api import IDEMPOTENCY_KEY
from orders.exceptions import (
    IdempotencyKeyReused,
    InvalidIdempotencyKey,
    MissingIdempotencyKey,
    OrderNotFound,
)
from orders.models import Order
from orders.problems import Problem, problem_of, problem_response
from orders.schemas import OrderOut, ProblemOut
from payments import windows
from payments.cancelling import cancel_for_buyer
from payments.exceptions import (
    AttemptStillOpen,
    GatewayRefused,
    GatewayUnavailable,
    InvalidSignature,
    Malformed,
    OrderNotCancellable,
    OrderNotPayable,
    PageBeingOpened,
    UnknownWay,
    Unreadable,
)
from payments.models import Payment
from payments.notifications import receive, receive_unreadable
from payments.paying import open_page, with_pages
from payments.providers import Gateway, gateways
from payments.providers.document import readable_text
from payments.status import PaymentStatus
from skincare.events.database_sessions import gave_up
from skincare.telemetry import metrics

log = structlog.get_logger(__name__)

router = Router(tags=["webhooks"])


class NotificationTaken(Schema):
    """The gateway need not call again."""

    status: Literal["ok"] = "ok"


_RESPONSES: Final = {200: NotificationTaken, (400, 403, 413, 503): ProblemOut}


def _add_route(gateway: Gateway) -> None:
    """Add the webhook of one gateway."""

    def webhook(request: HttpRequest) -> HttpResponse | NotificationTaken:
        return _take(request, gateway)

    webhook.__name__ = gateway.name  # the operation's id in the OpenAPI document
    webhook.__doc__ = f"""Take a notification that proves to come from {gateway.name}.

    `200` once it is stored, whatever it says, or was before; `403` where the sender is not proven;
    `400` for what is not JSON; `503` where it could not be stored.
    """
    router.post(
        f"/webhooks/{gateway.name}",
        response=_RESPONSES,
        summary=gateway.webhook_summary,
        openapi_extra={
            # The view reads the body itself: its proof is over the strings exactly as received.
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {**gateway.webhook_body}}},
            },
            "parameters": [*gateway.webhook_parameters],
            "x-problems": [
                *("webhook-forged", "webhook-malformed", "webhook-too-large"),
                *("webhook-order-not-known-yet", "webhook-not-stored"),
            ],
        },
    )(webhook)


for _gateway in gateways():
    _add_route(_gateway)


def _take(request: HttpRequest, gateway: Gateway) -> HttpResponse | NotificationTaken:
    headers = {key.lower(): value for key, value in request.headers.items()}
    try:
        body = _body(request)
        try:
            receive(gateway, gateway.verify(headers, body))
        except Unreadable as error:
            receive_unreadable(gateway, readable_text(body), reason=str(error))
    except InvalidSignature as error:
        raise _refusal(gateway, 403, "forged", "The sender is not proven.", error) from None
    except Malformed as error:
        raise _refusal(gateway, 400, "malformed", "This is not a notification.", error) from None
    except RequestDataTooBig as error:
        raise _refusal(gateway, 413, "too-large", "The body is too large.", error) from None
    except DatabaseError as error:  # whatever it is: the money must not be lost for want of a retry
        if gave_up(error):  # the order is being worked on; anybody can bring that about
            log.warning("notification_put_off", provider=gateway.name)
        else:
            log.error(
                "notification_not_stored",
                provider=gateway.name,
                error=type(error).__name__,
                exc_info=error,
            )
        return _call_again(request, "not-stored", "The notification could not be stored.")
    return NotificationTaken()


def _body(request: HttpRequest) -> bytes:
    """Return the body. Raises `RequestDataTooBig` over `settings.WEBHOOK_MAX_BYTES`.

    `request.body` would refuse what is longer than a buyer's cart, and never look at its proof.
    """
    body: bytes = request.read(settings.WEBHOOK_MAX_BYTES + 1)
    if len(body) > settings.WEBHOOK_MAX_BYTES:
        raise RequestDataTooBig(f"it has more than {settings.WEBHOOK_MAX_BYTES} bytes")
    return body


def _refusal(gateway: Gateway, status: int, kind: str, title: str, error: Exception) -> Problem:
    """Count the refusal with one log line, and return its problem. Nothing was stored."""
    metrics.count("WebhooksRejected", provider=gateway.name)
    log.warning("webhook_refused", provider=gateway.name, refusal=kind, detail=str(error))
    return Problem(status=status, type=f"webhook-{kind}", title=title, detail=str(error))


def _call_again(request: HttpRequest, kind: str, title: str) -> HttpResponse:
    problem = Problem(status=503, type=f"webhook-{kind}", title=title)
    response = problem_response(request, problem)
    response["Retry-After"] = str(settings.WEBHOOK_RETRY_AFTER_SECONDS)
    return response


def _offered(schema: dict[str, Any]) -> None:
    """Add what can be chosen now, which the settings say."""
    schema["enum"] = ["", *with_pages(), *windows.WAYS]


class PageIn(Schema):
    """Which payment page a buyer wants."""

    model_config = ConfigDict(extra="forbid")

    payment_method: Annotated[
        str,
        Field(
            max_length=32,
            description="a payment method as at checkout, or one way to pay; empty for what the "
            "order was made with",
            json_schema_extra=_offered,
        ),
    ] = ""


class PageOut(Schema):
    """A payment page. `token` is what the gateway's own script for web pages takes."""

    payment_id: Annotated[UUID, Field(validation_alias="id")]
    provider: str
    redirect_url: Annotated[str, Field(validation_alias="page_url")]
    token: Annotated[str, Field(validation_alias="session_id")]
    expires_at: datetime | None
    status: PaymentStatus


_KEY: Final[dict[str, Any]] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": True,
    "description": "As at checkout: the same key gets the same payment page again.",
    "schema": IDEMPOTENCY_KEY["schema"],
}


@router.post(
    "/orders/{order_id}/payments",
    response={
        201: PageOut,
        200: PageOut,
        (400, 404, 409, 413, 422, 502, 503): ProblemOut,
    },
    summary="Pay an order",
    tags=["shop"],
    openapi_extra={
        "parameters": [_KEY],
        "x-problems": [
            *("unreadable-body", "missing-idempotency-key", "invalid-idempotency-key"),
            *("order-not-found", "idempotency-key-reused", "order-not-payable"),
            *("payment-page-being-opened", "payment-still-open", "body-too-large"),
            *("invalid-request", "unknown-payment-method", "gateway-refused"),
            "gateway-unavailable",
        ],
    },
)
def pay(
    request: HttpRequest, order_id: UUID, payload: PageIn | None = None
) -> Status[Payment] | HttpResponse:
    """Open the order's payment page at its gateway.

    `201` for a new page, `200` for the one that is still open; `409` where the order cannot be paid
    (any more) or its page is just being opened; `502` and `503` where the gateway refuses, or does
    not answer: the latter is worth another try with the same key.
    """
    try:
        opened = open_page(
            order_id=order_id,
            wanted=payload.payment_method if payload else "",
            idempotency_key=request.headers.get("Idempotency-Key"),
        )
    except OrderNotFound:
        raise problem_of("order-not-found") from None
    except MissingIdempotencyKey as refusal:
        raise problem_of("missing-idempotency-key", detail=refusal.detail) from None
    except InvalidIdempotencyKey as refusal:
        raise problem_of("invalid-idempotency-key", detail=refusal.detail) from None
    except IdempotencyKeyReused as refusal:
        raise problem_of("idempotency-key-reused", detail=refusal.detail) from None
    except OrderNotPayable:
        raise problem_of("order-not-payable") from None
    except PageBeingOpened:
        return _later(request, "payment-page-being-opened", 2)
    except AttemptStillOpen:
        return _later(request, "payment-still-open", settings.WEBHOOK_RETRY_AFTER_SECONDS)
    except UnknownWay as refusal:
        raise problem_of("unknown-payment-method", detail=str(refusal)) from None
    except GatewayRefused as refusal:
        log.error("payment_page_refused", provider=refusal.provider, reason=refusal.reason)
        raise problem_of("gateway-refused") from None
    except GatewayUnavailable as error:
        return _later(request, "gateway-unavailable", math.ceil(error.retry_after or 5))
    return Status(201 if opened.is_new else 200, opened.payment)


@router.post(
    "/orders/{order_id}/cancel",
    response={200: OrderOut, (404, 409, 422): ProblemOut},
    summary="Cancel an order",
    tags=["shop"],
    openapi_extra={
        "x-problems": ["order-not-found", "order-not-cancellable", "invalid-request"],
    },
)
def cancel(request: HttpRequest, order_id: UUID) -> Order:
    """Give up an order that is not paid: its stock is free again, and its payment page is closed.

    Who knows its id may, as for looking at it. `200` also where it has ended unpaid before; `409`
    where money is in, on its way or being checked: `detail` says which.
    """
    try:
        cancel_for_buyer(order_id=order_id)
    except OrderNotFound:
        raise problem_of("order-not-found") from None
    except OrderNotCancellable as refusal:
        raise problem_of("order-not-cancellable", detail=refusal.args[0]) from None
    return Order.objects.prefetch_related("lines", "payments").get(pk=order_id)


def _later(request: HttpRequest, kind: str, seconds: int) -> HttpResponse:
    response = problem_response(request, problem_of(kind))
    response["Retry-After"] = str(seconds)
    return response
