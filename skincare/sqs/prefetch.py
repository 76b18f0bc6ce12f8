"""How many messages a worker may hold, and which wait for a process that becomes free.

A message takes one slot of the budget from receive to outcome. Some more are fetched into a buffer
while all processes are busy, so that no process idles for a round trip to SQS. Another worker could
have had those, so they wait for moments only: as many are fetched as our processes will start
within TARGET_WAIT, by the pace of the tasks that ended last; and what has not started after
MAX_WAIT is shown to the others again. That costs a receive, so it is done once at most for a
message: one that has come back stays until a slot is free.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
MAX_MESSAGES = 10  # of one ReceiveMessage

#: Seconds within which a message that is fetched ahead is to start. Where tasks take as long as
#: that, none is fetched ahead.
TARGET_WAIT = 0.1
#: Seconds after which it goes back; longer than `poller.BUFFER_POLL`, or we would get it again.
MAX_WAIT = 1.5
#: Messages of four polls: one lot is worked off while others are on their way.
MAX_BUFFERED = 40
#: How much of the known pace remains after a task that was faster.
_MEMORY = 0.9

T = TypeVar("T")


@dataclass
class PrefetchBudget:
    """One slot for each process of the pool, shared fairly by the queues that are polled."""

    capacity: int
    #: Slots in use: messages that are with Celery.
    held: int = 0
    #: Messages in the buffer, and how many may be there; see `PrefetchBuffer`.
    buffered: int = 0
    buffer_limit: int = 0
    #: How many queues share it.
    queues: int = 1
    #: Messages that polls in flight may bring, by queue.
    _reserved: dict[str, int] = field(default_factory=dict)
    #: The same for the polls that a queue has beside that one; each asks for MAX_MESSAGES.
    _extra_polls: int = 0

    @property
    def free(self) -> int:
        """Slots without a message, whatever polls in flight may bring."""
        return max(self.capacity - self.held, 0)

    @property
    def worth_a_poll(self) -> bool:
        """Whether a slot is free, or the buffer is so far used up that a poll pays."""
        return self.free > 0 or self.buffered * 2 < self.buffer_limit

    def reserve(self, queue: str) -> int:
        """Return how many messages the queue's next poll may ask for; 0 where it can wait.

        A queue gets its share of what the polls of the others leave, but one at least: a poll that
        hangs must not keep the other queues waiting. With n queues, n - 1 messages may thus wait
        for a slot.
        """
        self.unreserve(queue)
        if not self.worth_a_poll:
            return 0
        left = self._room
        share = math.ceil(left / max(self.queues - len(self._reserved), 1))
        count = min(max(share, 1), MAX_MESSAGES)
        self._reserved[queue] = count
        return count

    @property
    def _room(self) -> int:
        """How many more messages could start soon, beyond those that polls in flight may bring."""
        ahead = max(self.buffer_limit - self.buffered, 0)
        asked_for = sum(self._reserved.values()) + self._extra_polls * MAX_MESSAGES
        return self.free + ahead - asked_for

    def reserve_extra(self) -> bool:
        """Take the room for another full poll, if there is so much."""
        if self._room < MAX_MESSAGES:
            return False
        self._extra_polls += 1
        return True

    def unreserve_extra(self) -> None:
        """Say that such a poll has ended."""
        self._extra_polls -= 1

    def unreserve(self, queue: str) -> None:
        """Say that the queue's poll has ended."""
        self._reserved.pop(queue, None)


class PrefetchBuffer(Generic[T]):
    """What waits for a slot, oldest first, and how much may."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[float, T]] = deque()
        self._pace: float | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[T]:
        return (item for _, item in self._waiting)

    def observe(self, seconds: float) -> None:
        """Take note that a message held its slot for so long.

        One slow task lowers the limit at once; it takes many faster ones to raise it again.
        """
        pace = seconds if self._pace is None else self._pace
        self._pace = max(seconds, _MEMORY * pace + (1 - _MEMORY) * seconds)

    def limit(self, capacity: int) -> int:
        """Return how many messages may wait behind `capacity` slots."""
        if self._pace is None or self._pace >= TARGET_WAIT:
            return 0
        return min(int(capacity * TARGET_WAIT / max(self._pace, 0.001)), MAX_BUFFERED)

    def add(self, item: T) -> None:
        """Let it wait."""
        self._waiting.append((time.monotonic() + MAX_WAIT, item))

    def pop(self) -> T | None:
        """Remove and return what has waited longest, None if nothing waits."""
        return self._waiting.popleft()[1] if self._waiting else None

    def remove(self, unwanted: Callable[[T], bool]) -> list[T]:
        """Remove and return what is `unwanted`."""
        items = [item for _, item in self._waiting if unwanted(item)]
        self._waiting = deque(entry for entry in self._waiting if entry[1] not in items)
        return items

    def clear(self) -> list[T]:
        """Remove and return all that waits."""
        items = [item for _, item in self._waiting]
        self._waiting.clear()
        return items

    @property
    def time_left(self) -> float:
        """Seconds until something here has waited for MAX_WAIT."""
        return self._waiting[0][0] - time.monotonic() if self._waiting else MAX_WAIT

    def expire(self) -> list[T]:
        """Remove and return all that waits: the tasks before it are slower than they were."""
        self.observe(MAX_WAIT)
        return self.clear()
