"""Messages fetched while all processes are busy, so that no process idles for a round trip.

Another worker could have had them, so they wait for moments only: as many are fetched as our
processes will start within WAIT, by the pace of the tasks that ended last; and what has not
started after MAX_WAIT is shown to the others again.
"""

import time
from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

#: Seconds within which a message that is fetched ahead shall start. Where tasks take as long as
#: that, none is fetched ahead.
WAIT = 0.1
#: Seconds after which it goes back; longer than `poller.AHEAD_POLL`, or we would get it again.
MAX_WAIT = 1.5
#: Messages of two polls: one lot is worked off while the next is on its way.
MAX_AHEAD = 20
#: How much of the known pace remains after a task that was faster.
_MEMORY = 0.9

T = TypeVar("T")


class Lookahead(Generic[T]):
    """What waits for a slot, oldest first, and how much may."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[float, T]] = deque()
        self._pace: float | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[T]:
        return (item for _, item in self._waiting)

    def learn(self, seconds: float) -> None:
        """Take note that a message held its slot so long.

        A slow task is believed at once, faster ones by and by.
        """
        pace = seconds if self._pace is None else self._pace
        self._pace = max(seconds, _MEMORY * pace + (1 - _MEMORY) * seconds)

    def limit(self, capacity: int) -> int:
        """Return how many messages may wait behind `capacity` slots."""
        if self._pace is None or self._pace >= WAIT:
            return 0
        return min(int(capacity * WAIT / max(self._pace, 0.001)), MAX_AHEAD)

    def add(self, item: T) -> None:
        """Let it wait."""
        self._waiting.append((time.monotonic() + MAX_WAIT, item))

    def next(self) -> T | None:
        """Return what has waited longest, None if nothing waits."""
        return self._waiting.popleft()[1] if self._waiting else None

    def clear(self) -> list[T]:
        """Return all that waits, and let it wait no more."""
        items = [item for _, item in self._waiting]
        self._waiting.clear()
        return items

    @property
    def patience(self) -> float:
        """Seconds until something here will have waited too long."""
        return self._waiting[0][0] - time.monotonic() if self._waiting else MAX_WAIT

    def give_up(self) -> list[T]:
        """Return all that waits: the tasks before it are not as fast as they were."""
        self.learn(MAX_WAIT)
        return self.clear()
