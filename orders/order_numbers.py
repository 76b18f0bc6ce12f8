"""The number of an order that people read to each other: SKN-20261111-7F3K2Q."""

import secrets
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

#: Neither 0 and O, nor 1, I and L, nor U and V: they are misread and misheard.
ALPHABET: Final = "23456789ABCDEFGHJKMNPQRSTWXYZ"
_SUFFIX_LENGTH: Final = 6  # 29^6, about 595 million numbers a day
JAKARTA: Final = ZoneInfo("Asia/Jakarta")


def new_order_number(moment: datetime) -> str:
    """Return a random number for an order made at `moment`, which is aware; the day is Jakarta's.

    It can be taken already: the database says so, and the caller draws another.
    """
    suffix = "".join(secrets.choice(ALPHABET) for _ in range(_SUFFIX_LENGTH))
    return f"SKN-{moment.astimezone(JAKARTA):%Y%m%d}-{suffix}"
