"""The gateways' webhooks: verify, parse, one service, a status code.

What the gateways make of the answers: 2xx ends it; both call again after any other. Midtrans after
2, 10, 30 and 90 minutes for 503, twice for 400, once for 500; Xendit up to six times in 24 h.
"""

from typing import Any, Final, Literal

import structlog
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema

from orders.problems import Problem, problem_response
from orders.schemas import ProblemOut
from payments.notifications import receive
from payments.providers import Forged, GatewayNotification, Malformed, Provider, provider
from skincare.telemetry import metrics

log = structlog.get_logger(__name__)

router = Router(tags=["webhooks"])


class NotificationTaken(Schema):
    """The gateway need not call again."""

    status: Literal["ok"] = "ok"


_RESPONSES: Final = {200: NotificationTaken, (400, 403, 413, 503): ProblemOut}

#: The views read the body themselves: its signature is over the strings exactly as received.
_BODY: Final[dict[str, Any]] = {
    "required": True,
    "content": {"application/json": {"schema": {"type": "object"}}},
}
_TOKEN: Final[dict[str, Any]] = {
    "name": "x-callback-token",
    "in": "header",
    "required": True,
    "schema": {"type": "string"},
}


@router.post(
    "/webhooks/midtrans",
    response=_RESPONSES,
    summary="Midtrans notifies a transaction",
    openapi_extra={"requestBody": _BODY},
)
def midtrans(request: HttpRequest) -> HttpResponse | NotificationTaken:
    """Take a notification that is signed with the server key.

    `200` once it is stored and applied, or was before; `403` for a wrong signature; `400` for what
    is not a notification; `503` where the order is not known yet or the database does not answer.
    """
    return _take(request, "midtrans")


@router.post(
    "/webhooks/xendit",
    response=_RESPONSES,
    summary="Xendit notifies a payment",
    openapi_extra={"requestBody": _BODY, "parameters": [_TOKEN]},
)
def xendit(request: HttpRequest) -> HttpResponse | NotificationTaken:
    """Take a callback that carries the callback token.

    `200` once it is stored and applied, or was before; `403` for a wrong token; `400` for what is
    not a callback; `503` where the order is not known yet or the database does not answer.
    """
    return _take(request, "xendit")


def _take(request: HttpRequest, name: str) -> HttpResponse | NotificationTaken:
    try:
        notification = _read(request, provider(name))
        if notification is not None and receive(notification).must_come_again:
            return _call_again(request, "order-not-known-yet", "The order is not known yet.")
    except Forged as error:
        raise _refusal(name, 403, "forged", "The sender is not proven.", error) from None
    except Malformed as error:
        raise _refusal(name, 400, "malformed", "This is not a notification.", error) from None
    except RequestDataTooBig as error:
        raise _refusal(name, 413, "too-large", "The body is too large.", error) from None
    except DatabaseError as error:  # whatever it is: the money must not be lost for want of a retry
        log.error(
            "notification_not_stored", provider=name, error=type(error).__name__, exc_info=error
        )
        return _call_again(request, "not-stored", "The notification could not be stored.")
    return NotificationTaken()


def _read(request: HttpRequest, gateway: Provider) -> GatewayNotification | None:
    headers = {key.lower(): value for key, value in request.headers.items()}
    return gateway.parse(gateway.verify(headers, request.body))


def _refusal(name: str, status: int, kind: str, title: str, error: Exception) -> Problem:
    """Count the refusal with one log line, and return its problem. Nothing was stored."""
    metrics.count("WebhooksRejected", provider=name)
    log.warning("webhook_refused", provider=name, refusal=kind, detail=str(error))
    return Problem(status=status, type=f"webhook-{kind}", title=title, detail=str(error))


def _call_again(request: HttpRequest, kind: str, title: str) -> HttpResponse:
    problem = Problem(status=503, type=f"webhook-{kind}", title=title)
    response = problem_response(request, problem)
    response["Retry-After"] = str(settings.WEBHOOK_RETRY_AFTER_SECONDS)
    return response
