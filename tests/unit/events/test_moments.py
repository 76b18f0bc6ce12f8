"""What an operator may type after --since."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from skincare.events.exceptions import InvalidDuration, InvalidMoment
from skincare.events.moments import check_moment, moment_since, parse_moment


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        (" 2h ", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
    ],
)
def test_a_period_counts_back_from_now(text: str, ago: timedelta) -> None:
    before = timezone.now()
    assert before - ago <= moment_since(text) <= timezone.now() - ago


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-11-11T07:00:00+07:00", "2026-11-11T00:00:00+00:00"),
        ("2026-11-11T00:00:00Z", "2026-11-11T00:00:00+00:00"),
        ("2026-11-11 07:00", "2026-11-11T00:00:00+00:00"),  # in Jakarta, where the shop is
        ("2026-11-11", "2026-11-10T17:00:00+00:00"),
    ],
)
def test_a_time_is_taken_as_it_is(text: str, utc: str) -> None:
    moment = moment_since(text)
    assert moment.tzinfo is not None
    assert moment.timestamp() == datetime.fromisoformat(utc).timestamp()


@pytest.mark.parametrize("text", ["", "2", "h", "2 h", "-2h", "2w", "yesterday", "9999999h"])
def test_anything_else_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(InvalidDuration, match="90s, 30m, 2h or 7d"):
        moment_since(text)


@pytest.mark.parametrize("text", ["999999d", "1999-12-31", "2100-01-02", "0001-01-01T00:00:00Z"])
def test_what_is_not_between_2000_and_2100_is_refused(text: str) -> None:
    with pytest.raises(InvalidDuration):
        moment_since(text)


def test_a_moment_without_an_offset_is_refused() -> None:
    with pytest.raises(InvalidMoment, match="must have an offset"):
        check_moment(datetime(2026, 11, 11))  # noqa: DTZ001  (that is the point)


def test_only_the_separators_of_rfc_3339_are_taken() -> None:
    for text in ("2026-11-11 00:00:00Z", "2026-11-11T00:00Z", "2026-11-11T00:00:00+0700"):
        with pytest.raises(InvalidMoment, match="must be an RFC 3339 time"):
            parse_moment(text)
