"""How far back: what an operator types after --since."""

import re
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

_PERIOD: Final = re.compile(r"(\d{1,6})([smhd])\Z")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class InvalidPeriod(ValueError):
    """Write a time as 90s, 30m, 2h or 7d ago, or as 2026-11-11T00:00:00+07:00."""


def moment_since(text: str) -> datetime:
    """Return the moment that `text` means: a period before now, or an RFC 3339 time.

    A time without an offset is in the shop's time zone. Raises `InvalidPeriod`.
    """
    if found := _PERIOD.match(text.strip()):
        number, unit = found.groups()
        return timezone.now() - timedelta(**{_UNITS[unit]: int(number)})
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidPeriod(InvalidPeriod.__doc__) from None
    return moment if moment.tzinfo else timezone.make_aware(moment)
