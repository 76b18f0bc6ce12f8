"""A clock that runs with the machine's, and can be moved forward."""

import heapq
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from typing import Final

JAKARTA: Final = timezone(timedelta(hours=7))  # no daylight saving


class Clock:
    """Seconds since 1970, moved forward by `advance` seconds in all.

    shows_real_time: what the gateways write, and are told, is by the machine's clock all the same:
    for a shop that stays there, and whose rows grow older instead.
    """

    def __init__(self) -> None:
        self._ahead = 0.0
        self.shows_real_time = False

    def shown(self, moment: float) -> float:
        """Return a moment as the gateways write it."""
        return moment - (self._ahead if self.shows_real_time else 0.0)

    def told(self, moment: float) -> float:
        """Return a moment that a shop wrote, by this clock."""
        return moment + (self._ahead if self.shows_real_time else 0.0)

    def now(self) -> float:
        return time.time() + self._ahead

    def utc(self) -> datetime:
        return datetime.fromtimestamp(self.now(), UTC)

    def advance_to(self, moment: float) -> None:
        """Move forward to `moment`; a moment that has passed changes nothing."""
        self._ahead += max(0.0, moment - self.now())

    def advance(
        self,
        seconds: float,
        *,
        next_due: Callable[[], float | None],
        run_due: Callable[[], None],
    ) -> None:
        """Move forward by `seconds`, stopping at each moment at which something is due.

        next_due: when the next thing is due, None for nothing.
        run_due: does all that is due now.
        """
        end = self.now() + seconds
        run_due()
        while (due := next_due()) is not None and due <= end:
            self.advance_to(due)
            run_due()
        self.advance_to(end)


def wib(moment: float) -> str:
    """Midtrans's way to write a time: Jakarta's, without saying so."""
    return datetime.fromtimestamp(moment, JAKARTA).strftime("%Y-%m-%d %H:%M:%S")


def iso(moment: float, digits: int = 3) -> str:
    """Xendit's way to write a time: UTC, with 0, 3, 6 or 9 digits of the second."""
    at = datetime.fromtimestamp(moment, UTC)
    fraction = f".{f'{at.microsecond:06d}000'[:digits]}" if digits else ""
    return f"{at:%Y-%m-%dT%H:%M:%S}{fraction}Z"


class Agenda:
    """What is to be done later, by the clock: an expiry, a settlement, a bank's confirmation."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tasks: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def at(self, moment: float, task: Callable[[], None]) -> None:
        """Do `task` at `moment`; it has to look whether it is still wanted then."""
        with self._lock:
            heapq.heappush(self._tasks, (moment, next(self._numbers), task))

    def next_due(self) -> float | None:
        with self._lock:
            return self._tasks[0][0] if self._tasks else None

    def run_due(self) -> None:
        while True:
            with self._lock:
                if not self._tasks or self._tasks[0][0] > self._clock.now():
                    return
                _, _, task = heapq.heappop(self._tasks)
            task()
