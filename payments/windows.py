"""How long a buyer has to pay: it depends on the way, and starts with the attempt.

The names of the ways are ours; each gateway's module maps them to its own.
"""

from collections.abc import Mapping
from typing import Final

_DAY: Final = 24 * 60

#: way → minutes. https://docs.midtrans.com/docs/snap-advanced-feature (expiry of each method)
WAYS: Final[Mapping[str, int]] = {
    "qris": 15,
    "ewallet": 15,
    "card": 30,
    "virtual_account": _DAY,
    "counter": _DAY,
}
#: Where the buyer picks on the gateway's page.
ANY_WAY_MINUTES: Final = _DAY
#: For an order whose buyer has not asked for a payment page.
WITHOUT_ATTEMPT_MINUTES: Final = 30


def minutes(way: str) -> int:
    """Return how long a page for `way` is open; "" is for all ways."""
    return WAYS.get(way, ANY_WAY_MINUTES)
