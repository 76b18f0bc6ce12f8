"""The one rule for moments that come from outside: queue, webhooks, forms and commands.

A moment has an offset, and lies between 2000 and 2100. What is further away is a mistake of its
sender (a clock that was never set, a time in milliseconds), and breaks whoever adds hours to it or
writes it in another time zone.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from django.utils import timezone

from skincare.events.exceptions import InvalidDuration, InvalidMoment

EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2100, 1, 1, tzinfo=UTC)
#: PostgreSQL takes no offset of 16 hours or more (MAX_TZDISP_HOUR in its timestamp.h); RFC 3339
#: would allow 23:59.
MAX_OFFSET: Final = timedelta(hours=15, minutes=59)

_RFC3339: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})\Z", re.ASCII
)
_DURATION: Final = re.compile(r"(\d{1,6})([smhd])\Z", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def check_moment(moment: datetime) -> datetime:
    """Return `moment` if it is between 2000 and 2100 with an offset that PostgreSQL takes.

    Raises `InvalidMoment`, also for one without an offset.
    """
    offset = moment.utcoffset()
    if offset is None:
        raise InvalidMoment("must have an offset")
    if abs(offset) > MAX_OFFSET:
        raise InvalidMoment("must have an offset of at most 15:59")
    if not EARLIEST <= moment <= LATEST:
        raise InvalidMoment("must be between the years 2000 and 2100")
    return moment


def parse_moment(text: str) -> datetime:
    """Return the moment that an RFC 3339 text means, to the microsecond. Raises `InvalidMoment`."""
    if _RFC3339.match(text):
        try:
            moment = datetime.fromisoformat(text.upper())
        except ValueError:
            pass
        else:
            return check_moment(moment)
    raise InvalidMoment("must be an RFC 3339 time with an offset, like 2026-11-11T00:00:00+07:00")


def moment_since(text: str) -> datetime:
    """Return the moment that an operator means: a duration before now ("2h"), or a time.

    A time without an offset is in the shop's time zone. Raises `InvalidDuration`, also for what is
    not between 2000 and 2100.
    """
    text = text.strip()
    try:
        if found := _DURATION.match(text):
            number, unit = found.groups()
            return check_moment(timezone.now() - timedelta(**{_UNITS[unit]: int(number)}))
        moment = datetime.fromisoformat(text)
        return check_moment(moment if moment.tzinfo else timezone.make_aware(moment))
    except (ValueError, OverflowError):
        raise InvalidDuration(InvalidDuration.__doc__) from None
