"""The two health checks of the API, for load balancers and container platforms."""

from collections.abc import Callable
from typing import Final

import structlog
from django.http import HttpRequest, HttpResponse, JsonResponse

from skincare.telemetry.readiness import database_check

log = structlog.get_logger(__name__)

READY_WITHIN_SECONDS: Final = 1.0


def healthz(request: HttpRequest) -> HttpResponse:
    """Say that the process lives; it asks nobody else."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    """Say whether requests can be served: the database answers. SQS is not part of it."""
    if not database_check.passes(within=READY_WITHIN_SECONDS):
        log.warning("readyz_failed")
        return JsonResponse({"status": "database unreachable"}, status=503)
    return JsonResponse({"status": "ok"})


class HealthMiddleware:
    """Answers both before the host and the scheme are checked.

    A load balancer and a container's own check call the task by its address, in plain http: what
    comes later would refuse them in production.
    """

    _VIEWS: Final = {"/healthz": healthz, "/readyz": readyz}

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._VIEWS.get(request.path, self._get_response)(request)
