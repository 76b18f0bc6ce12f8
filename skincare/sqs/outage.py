"""Messages that wait in the worker because what their tasks need is away.

Nothing is wrong with them, so they must not use up their receives. One of them is tried at a time,
after a growing wait; when its task succeeds, the others follow, and then the queue is polled again.
"""

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kombu.asynchronous import Hub

from skincare.sqs.acknowledger import Extensions
from skincare.sqs.backoff import full_jitter
from skincare.sqs.decoder import Incoming
from skincare.sqs.policy import SQSPolicy
from skincare.sqs.poller import Poller
from skincare.sqs.prefetch import PrefetchBudget

log = logging.getLogger(__name__)

#: Seconds before another look for a free slot, or for a message whose visibility lasts long enough.
_PAUSE = 1.0


@dataclass
class _Outage:
    """From the first task that met it to the last message that waited."""

    what: str
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    began_at: float = field(default_factory=time.monotonic)
    #: Tries in a row that met it.
    failures: int = 0
    #: The message that is being tried.
    retried: Incoming | None = None
    #: Whether a try has succeeded, so that the others may follow as slots become free.
    recovering: bool = False


class WaitingRoom:
    """The messages of one queue that wait for the end of an outage; outside of one, empty."""

    def __init__(
        self,
        hub: Hub,
        poller: Poller,
        extensions: Extensions,
        *,
        policy: SQSPolicy,
        budget: PrefetchBudget,
        start: Callable[[Incoming], None],
    ) -> None:
        self._hub = hub
        self._poller = poller
        self._extensions = extensions
        self._policy = policy
        self._budget = budget
        self._start = start
        self._outage: _Outage | None = None
        self._waiting: deque[Incoming] = deque()
        self._timer: Any = None

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_open(self) -> bool:
        """Whether there is an outage, so that what is received waits here."""
        return self._outage is not None

    @property
    def messages(self) -> list[Incoming]:
        """What waits, oldest first."""
        return list(self._waiting)

    def status(self) -> dict[str, Any]:
        """Return what the health file says of the outage."""
        if self._outage is None:
            return {}
        return {
            "waiting_for": self._outage.what,
            "waiting_since": self._outage.began.isoformat(timespec="seconds"),
            "waiting": len(self._waiting),
        }

    def add(self, incoming: Incoming) -> None:
        """Let a message wait that was received during the outage."""
        self._waiting.append(incoming)

    def unavailable(self, incoming: Incoming, what: str) -> None:
        """Let the message of a task wait that lacked `what`."""
        outage = self._outage
        is_news = outage is None or outage.recovering or outage.retried is incoming
        if outage is None:
            outage = self._outage = _Outage(what)
            log.warning(
                "queue_waiting", extra={"queue": incoming.message.queue, "waiting_for": what}
            )
            self._poller.pause()
        self._waiting.append(incoming)
        if is_news:  # the others met it at the same time
            outage.recovering = False
            outage.retried = None
            outage.failures += 1
            self._schedule(full_jitter(outage.failures - 1, self._policy.outage_backoff))

    def ended(self, incoming: Incoming, *, succeeded: bool) -> None:
        """See what another end of a task says about the outage."""
        outage = self._outage
        if outage is None or outage.retried is not incoming:
            return
        outage.retried = None
        outage.recovering = succeeded
        self._schedule(0.0)  # one that failed for reasons of its own says nothing: try another

    def keep_invisible(self) -> None:
        """Extend the visibility of what waits. To be called every few seconds."""
        for incoming in [one for one in self._waiting if one.message.seconds_left <= 0]:
            self._waiting.remove(incoming)
            log.warning("message_lost_while_waiting", extra=incoming.message.log_fields)
        for incoming in self._waiting:
            self._extensions.extend(incoming.message, policy=self._policy)

    def start_recovered(self) -> None:
        """Start what waited in the slots that are free, if the outage is over."""
        outage = self._outage
        if outage is None or not outage.recovering:
            return
        while self._budget.free and (incoming := self._pop()) is not None:
            self._start(incoming)
        if self._outage is outage and outage.recovering and not self._waiting:
            self._end(outage)

    def clear(self) -> list[Incoming]:
        """Forget the outage; return what waited."""
        self._outage = None
        self._cancel_timer()
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting

    def _schedule(self, delay: float) -> None:
        self._cancel_timer()
        self._timer = self._hub.call_later(delay, self._look)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        outage = self._outage
        if outage is None:
            return
        self.keep_invisible()
        if not self._waiting:
            self._end(outage)
        elif outage.recovering:
            self.start_recovered()
        elif self._budget.free and (incoming := self._pop()) is not None:
            outage.retried = incoming
            self._start(incoming)
            return  # its end goes on from here
        if self._outage is outage and self._timer is None:
            self._schedule(_PAUSE)

    def _pop(self) -> Incoming | None:
        for incoming in self._waiting:
            if incoming.message.seconds_left >= self._policy.hard_time_limit:
                self._waiting.remove(incoming)
                return incoming
        return None

    def _end(self, outage: _Outage) -> None:
        self._outage = None
        self._cancel_timer()
        log.warning(
            "queue_resumed",
            extra={
                "queue": self._poller.queue,
                "waiting_for": outage.what,
                "seconds": round(time.monotonic() - outage.began_at, 1),
            },
        )
        self._poller.resume()
