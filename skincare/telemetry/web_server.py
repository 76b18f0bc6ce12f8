"""gunicorn's own lines, and one line for each request, in the form of all the others."""

from datetime import timedelta
from typing import Any, Final

import structlog
from django.conf import settings
from gunicorn.config import Config
from gunicorn.glogging import Logger

from skincare.telemetry.identity import identify
from skincare.telemetry.request_id import HEADER

log = structlog.get_logger(__name__)

#: Asked every few seconds by the load balancer; a line is written only where the answer is bad.
_HEALTH_PATHS: Final = frozenset({"/healthz", "/readyz"})


class JSONLogger(Logger):
    """Named by `logger_class` in gunicorn.conf.py; gunicorn makes it before it forks."""

    def setup(self, cfg: Config) -> None:
        """Hand gunicorn's records to the handler that the settings make."""
        identify("api")
        settings.LOGGING_CONFIG  # noqa: B018 loads the settings, and they set up logging
        super().setup(cfg)
        for logger in (self.error_log, self.access_log):
            logger.handlers.clear()
            logger.propagate = True

    def access(self, resp: Any, req: Any, environ: dict[str, Any], request_time: timedelta) -> None:
        """Log what was answered: no query, no address, no header but the request's id."""
        status = int(str(resp.status).split(None, 1)[0])
        path = environ.get("PATH_INFO", "")
        if path in _HEALTH_PATHS and status < 400:
            return
        log.info(
            "request_served",
            request_id=_header(resp.headers, HEADER),
            method=environ.get("REQUEST_METHOD"),
            path=path,
            status=status,
            duration_ms=round(request_time.total_seconds() * 1000, 1),
            response_bytes=getattr(resp, "sent", None),
        )


def _header(headers: list[tuple[str, str]], name: str) -> str | None:
    return next((value for key, value in headers if key.lower() == name.lower()), None)
