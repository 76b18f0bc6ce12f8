"""When a gateway is asked for a payment that no notification has ended: pure."""

from datetime import datetime, timedelta
from typing import Final

#: After the payment page was opened. Midtrans notifies a settlement within 20 s and an expiry
#: within 90 s; Xendit calls again after 15 minutes and later.
AFTER_OPENING: Final = (
    timedelta(minutes=2),
    timedelta(minutes=10),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=24),
)
#: After the time to pay is over: neither the end of Midtrans's page nor a cancelled session of
#: Xendit is notified, and only then can the order be given up.
AFTER_EXPIRY: Final = timedelta(minutes=2)
#: For late money, which banks report up to a day later.
LAST: Final = timedelta(hours=48)
#: After the money came in: some bank transfers are reversed minutes later, and that notification
#: may be lost as any other. https://docs.midtrans.com/docs/transaction-status-cycle
AFTER_PAYING: Final = timedelta(minutes=10)


def next_time(
    *,
    opened_at: datetime,
    expires_at: datetime | None,
    asked_at: datetime | None,
    paid_at: datetime | None = None,
) -> datetime | None:
    """Return when to ask next; None when it was asked for the last time.

    `asked_at` is when it was asked last, by whatever cause; None where it never was. `paid_at` is
    when the money came in, None where it did not.
    """
    end = expires_at or opened_at + AFTER_OPENING[-1]
    if paid_at is None:
        moments = [*(opened_at + wait for wait in AFTER_OPENING), end + AFTER_EXPIRY, end + LAST]
    else:
        moments = [paid_at + AFTER_PAYING, end + LAST]
    since = asked_at or opened_at
    return min((moment for moment in moments if moment > since), default=None)
