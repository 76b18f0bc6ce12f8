"""System checks: a provider that is enabled must be able to prove who calls."""

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

#: provider → (the setting with its secret, where the operator finds the value).
_SECRETS: Final[Mapping[str, tuple[str, str]]] = {
    "midtrans": ("MIDTRANS_SERVER_KEY", "Midtrans dashboard, Settings, Access Keys"),
    "xendit": ("XENDIT_CALLBACK_TOKEN", "Xendit dashboard, Settings, Webhooks"),
}
_KNOWN: Final = frozenset({*_SECRETS, "sandbox"})


@register()
def providers_can_verify(**_: Any) -> list[CheckMessage]:
    """Refuse an enabled provider without its secret: anybody could forge its payments."""
    enabled = settings.PAYMENT_PROVIDERS
    problems: list[CheckMessage] = [
        Error(
            f"{name} is in PAYMENT_PROVIDERS, but {variable} is empty: anybody could forge its "
            f"notifications. Set {variable} ({source}), or remove {name}.",
            id=f"payments.E00{number}",
        )
        for number, (name, (variable, source)) in enumerate(_SECRETS.items(), start=1)
        if name in enabled and not getattr(settings, variable)
    ]
    problems += [
        Error(
            f"{name} in PAYMENT_PROVIDERS is not a known provider: use "
            f"{', '.join(sorted(_KNOWN))}.",
            id="payments.E003",
        )
        for name in enabled
        if name not in _KNOWN
    ]
    if settings.IN_PRODUCTION and "sandbox" in enabled:
        problems.append(
            Error(
                "sandbox is in PAYMENT_PROVIDERS in production, where anybody could pay with it: "
                "remove it.",
                id="payments.E004",
            )
        )
    return problems
