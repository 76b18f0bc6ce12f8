"""System checks: with every number that they accept, checkout, emails and sweeps work."""

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from orders.models import CheckoutRequest
from skincare.events.checks import DAYS, Range, out_of_range

_LONGEST_KEY: Final[int] = CheckoutRequest._meta.get_field("key").max_length or 0

_RANGES: Final[Mapping[str, Range]] = {
    "EMAIL_TRIES": Range(1, 10, "it counts the tries of one email in one task"),
    "EMAILS_PER_ORDER_AND_HOUR": Range(1, 100, "a buyer gets no more of them"),
    "UNPAID_EMAILS_PER_ADDRESS_AND_DAY": Range(
        1, 1_000, "a stranger can have so many sent to anybody"
    ),
    "EMAIL_TIMEOUT": Range(0.1, 60, "a provider that hangs holds a worker's process so long"),
    "ORDER_WINDOW_MINUTES": Range(5, 1_440, "an order without a payment page keeps its stock"),
    "UNPAID_ORDER_EXPIRES_HOURS": Range(1, 720, "an unpaid order keeps its stock this long"),
    "UNPAID_ORDER_SWEEP_SECONDS": Range(1, 3_600, "expired orders keep their stock so long"),
    "CHECKOUT_MAX_LINES": Range(1, 500, "checkout locks this many products"),
    "CHECKOUT_MAX_QUANTITY": Range(1, 10_000, "it is the pieces of one product in one order"),
    "IDEMPOTENCY_KEY_MAX_LENGTH": Range(16, _LONGEST_KEY, "its column holds no more"),
    "PRUNE_CHECKOUT_REQUESTS_DAYS": DAYS,
    "PRUNE_LOGINS_DAYS": DAYS,
    "CORS_PREFLIGHT_MAX_AGE": Range(0, 86_400, "browsers keep it for a day at most"),
    "WEB_READ_SECONDS": Range(1, 60, "the load balancer gives up after 60"),
    "WEB_WRITE_SECONDS": Range(1, 300, "an answer is kept in memory so long"),
    "WEB_QUEUE_SECONDS": Range(1, 60, "the load balancer gives up after 60"),
    "WEB_RETRY_AFTER_SECONDS": Range(1, 3_600, "clients are told to come back then"),
    "TRUSTED_PROXY_COUNT": Range(0, 5, "it counts the proxies before the API"),
}


@register()
def numbers_are_in_range(**_: Any) -> list[CheckMessage]:
    """Check each number of this app on its own, and the waits between an email's tries."""
    problems = out_of_range(_RANGES, id_prefix="orders")
    waits = settings.EMAIL_RETRY_WAIT_SECONDS
    if not isinstance(waits, tuple | list) or not all(
        isinstance(wait, int | float) and 0 <= wait <= 60 for wait in waits
    ):
        problems.append(
            Error(
                f"EMAIL_RETRY_WAIT_SECONDS ({waits!r}) is not a tuple of waits from 0 to 60 s.",
                id="orders.E001",
            )
        )
    return problems
