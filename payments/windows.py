"""How long a buyer has to pay: it depends on the way, and starts with the attempt.

The names of the ways are ours; each gateway's module maps them to its own.
"""

from typing import Final

from django.conf import settings

WAYS: Final = ("qris", "ewallet", "card", "virtual_account", "counter")


def minutes(way: str) -> int:
    """Return how long a page for `way` is open; "" is for all ways."""
    return int(settings.PAYMENT_WINDOW_MINUTES[way])
