"""System checks: with every number that they accept, webhooks and the retention work."""

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from payments.windows import WAYS
from skincare.events.checks import Range, is_number, out_of_range

_RANGES: Final[Mapping[str, Range]] = {
    "WEBHOOK_LOCK_TIMEOUT_SECONDS": Range(0.1, 4, "Midtrans waits 5 seconds for an answer"),
    "GATEWAY_CONNECT_SECONDS": Range(0.1, 10, "a buyer waits so long for the payment page"),
    "GATEWAY_READ_SECONDS": Range(0.1, 30, "a buyer waits so long for the payment page"),
    "GATEWAY_ASKS_PER_MINUTE": Range(1, 300, "Xendit takes 600 calls a minute, and it may be two"),
    "RECONCILE_SWEEP_SECONDS": Range(1, 3_600, "a missed webhook is found so much later"),
    "UNMATCHED_RETRY_SECONDS": Range(1, 3_600, "a notification waits so long for its order"),
    "UNMATCHED_RETRY_DAYS": Range(1, 90, "a person looks at what is older"),
    "MONEY_CHECK_SECONDS": Range(60, 86_400, "a disagreement is found once a day at least"),
    "REFUNDS_PER_NOTIFICATION": Range(1, 1_000, "each is an event and an email"),
    "WEBHOOK_MAX_BYTES": Range(65_536, 16_777_216, "a process reads so much into its memory"),
    "WEBHOOK_RETRY_AFTER_SECONDS": Range(1, 3_600, "a gateway is told to call again then"),
    # The table's trigger (0004_retention) refuses to delete what is younger than 90 days, by the
    # database's clock.
    "PRUNE_NOTIFICATIONS_DAYS": Range(91, 36_500, "the database keeps them for 90 days"),
}

#: Midtrans's documents name 20 seconds and 5 minutes as the least; no order keeps its stock for
#: longer than a day. https://docs.midtrans.com/docs/snap-advanced-feature
_WINDOW: Final = Range(5, 1_440, "its page is open, and its order keeps its stock, so long")


@register()
def numbers_are_in_range(**_: Any) -> list[CheckMessage]:
    """Check each number of this app on its own."""
    return out_of_range(_RANGES, id_prefix="payments")


@register()
def each_way_has_a_window(**_: Any) -> list[CheckMessage]:
    """Check that each way to pay, and all of them together, has minutes in which to pay."""
    windows, names = settings.PAYMENT_WINDOW_MINUTES, {*WAYS, ""}
    if set(windows) != names or not all(
        is_number(one) and _WINDOW.least <= one <= _WINDOW.most for one in windows.values()
    ):
        return [
            Error(
                f"PAYMENT_WINDOW_MINUTES ({windows!r}) must give each of {sorted(names)} "
                f"{_WINDOW.least} to {_WINDOW.most} minutes: {_WINDOW.why}.",
                id="payments.E001",
            )
        ]
    return []
