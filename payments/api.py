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
from payments.exceptions import InvalidSignature, Malformed, Unreadable
from payments.notifications import receive, receive_unreadable
from payments.providers import Gateway, gateways
from payments.providers.document import readable_text
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
            "requestBody": _BODY,
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
        body = request.body
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
        log.error(
            "notification_not_stored",
            provider=gateway.name,
            error=type(error).__name__,
            exc_info=error,
        )
        return _call_again(request, "not-stored", "The notification could not be stored.")
    return NotificationTaken()


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
