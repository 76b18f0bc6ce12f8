"""What the API alone needs, since webhooks are served by nothing else."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from payments.providers import provider
from skincare.telemetry.identity import current_service


@register
def check_webhook_secrets(**_: Any) -> list[CheckMessage]:
    """Find offered providers whose notifications the API could not prove."""
    return missing_webhook_secrets() if current_service() == "api" else []


def missing_webhook_secrets() -> list[CheckMessage]:
    """Return an error for each secret that proves a sender and is not set."""
    return [
        Error(
            f"{secret.setting} is empty: set it (see .env.example).",
            hint=f"It is shown at: {secret.source}.",
            id="payments.E002",
        )
        for name in settings.PAYMENT_PROVIDERS
        for secret in provider(name).secrets
        if secret.proves_sender and not getattr(settings, secret.setting)
    ]
