"""Who speaks: on every log line, metric and error report of this process."""

from dataclasses import dataclass
from typing import Final, Literal

import structlog

Service = Literal["api", "worker", "relay", "manage"]


@dataclass
class Identity:
    """Set by whatever starts the process: the entry point and the settings."""

    service: Service = "manage"
    environment: str = ""
    release: str = ""


IDENTITY: Final = Identity()


def identify(service: Service) -> None:
    """Say which service this process and its later children are."""
    IDENTITY.service = service


def current_service() -> str:
    """Return the service of this thread: the relay is one within another service's process."""
    return structlog.contextvars.get_contextvars().get("service", IDENTITY.service)
