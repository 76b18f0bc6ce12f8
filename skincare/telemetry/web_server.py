"""gunicorn's own lines, and one line for each request, in the form of all the others."""

import logging
from typing import Final

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
        # It would log each request that waits for a thread; the metrics say how long.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)


def log_request(
    *,
    method: str,
    path: str,
    status: int,
    headers: list[tuple[str, str]],
    seconds: float,
    size: int,
) -> None:
    """Log what was answered: no query, no address, no header but the request's id.

    `headers` are the answer's; `seconds` it took from the worker's thread; `size` in bytes.
    """
    if path in _HEALTH_PATHS and status < 400:
        return
    log.info(
        "request_served",
        request_id=_header(headers, HEADER),
        method=method,
        path=path,
        status=status,
        duration_ms=round(seconds * 1000, 1),
        response_bytes=size,
    )


def _header(headers: list[tuple[str, str]], name: str) -> str | None:
    return next((value for key, value in headers if key.lower() == name.lower()), None)
