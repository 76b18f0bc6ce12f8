"""How many messages a worker may hold, shared fairly by the queues that it polls."""

from dataclasses import dataclass, field

#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
MAX_MESSAGES = 10  # of one ReceiveMessage


@dataclass
class Slots:
    """One slot for each process of the pool; a message holds one from receive to outcome."""

    capacity: int
    held: int = 0
    #: Messages that wait for a slot, and how many may; see `lookahead`.
    waiting: int = 0
    ahead: int = 0
    #: Slots that polls in flight may fill, by queue.
    _claims: dict[str, int] = field(default_factory=dict)

    @property
    def free(self) -> int:
        """Slots without a message, whatever polls in flight may bring."""
        return max(self.capacity - self.held, 0)

    @property
    def worth_a_poll(self) -> bool:
        """Whether a slot is free, or so many waiting messages are used up that a poll pays."""
        return self.free > 0 or self.waiting * 2 < self.ahead

    def claim(self, queue: str) -> int:
        """Return how many messages the queue's next poll may ask for; 0 where it can wait.

        A queue gets what the polls of the others leave, but one at least: a poll that hangs must
        not keep the other queues waiting. With n queues, n - 1 messages may thus wait for a slot.
        """
        self.unclaim(queue)
        if not self.worth_a_poll:
            return 0
        room = self.free or max(self.ahead - self.waiting, 0)
        claimed = sum(self._claims.values())
        count = min(max(room - claimed, 1), MAX_MESSAGES)
        self._claims[queue] = count
        return count

    def unclaim(self, queue: str) -> None:
        """Say that the queue's poll has ended."""
        self._claims.pop(queue, None)
