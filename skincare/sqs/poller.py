"""The endless polling of one queue, which nothing that SQS or the network does can end."""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kombu.asynchronous import Hub

from skincare.sqs.async_client import GARBAGE, LATE, NO_ANSWER, AsyncSQS, Result, SQSError
from skincare.sqs.backoff import POLL_BACKOFF, full_jitter
from skincare.sqs.decoder import ReceivedMessage, read_received
from skincare.sqs.policy import Observer, SQSPolicy, notify
from skincare.sqs.prefetch import MAX_MESSAGES, PrefetchBudget

log = logging.getLogger(__name__)

#: Seconds in which slots that become free share one poll, at least and at most. In between it is
#: the time that a poll takes: a slot that waits longer for others could have had an answer by then.
GATHER = (0.01, 0.02)
#: Seconds that a poll may wait for messages while no slot is free. Were it open for long, it would
#: take messages that by then nobody here can start.
BUFFER_POLL = 1
#: Polls beside the one that is always there, while there is a backlog.
MAX_EXTRA_POLLS = 2
#: Seconds between polls where a server answers at once that it has nothing, long poll or not.
EMPTY_PAUSE = 0.2

Receive = Callable[[list[ReceivedMessage]], None]


class PollerState(StrEnum):
    FULL = "full"  # no slot is free and enough waits for one, or the queue is paused
    GATHERING = "gathering"  # a slot became free; others that follow soon share its poll
    SCHEDULED = "scheduled"  # a poll starts when the timer fires: at once, or after a failure
    POLLING = "polling"
    LEAVING = "leaving"  # no more polls; one is still to be answered
    STOPPED = "stopped"


@dataclass(eq=False)
class _Poll:
    """One ReceiveMessage. Times are of `time.monotonic()`."""

    #: Messages.
    asked: int
    began_at: float = field(default_factory=time.monotonic)
    #: When the call went out, so the earliest moment at which SQS can have given out a message.
    sent_at: float = 0.0


class Poller:
    """Polls one queue as long as slots are free.

    One poll is in flight, and up to two more while there is a backlog: each is begun only if the
    one before came back full and there is room for another ten messages.

    `receive` gets what a poll brought; `release` gets what the last poll brought after `leave`.
    Whatever goes wrong with an answer or a timer, `supervise` sees that another poll follows.
    """

    def __init__(
        self,
        hub: Hub,
        sqs: AsyncSQS,
        *,
        queue: str,
        url: str,
        policy: SQSPolicy,
        budget: PrefetchBudget,
        counts: Counter[str],
        observer: Observer,
        receive: Receive,
        release: Receive,
    ) -> None:
        self._hub = hub
        self._sqs = sqs
        self.queue = queue
        self._url = url
        self._policy = policy
        self._budget = budget
        self._counts = counts
        self._observer = observer
        self._receive = receive
        self._release = release
        self._timer: Any = None
        self._due_at = 0.0  # `time.monotonic()` at which the timer is to fire
        self._poll_in_flight: _Poll | None = None
        self._extra_polls: set[_Poll] = set()
        self._backlog = False  # whether the last answer had all that was asked for
        self.polled_at = 0.0  # `time.monotonic()`
        self._round_trip = 0.0  # seconds, of the last poll that brought messages
        self._paused = False
        self.state = PollerState.STOPPED
        self.failures = 0
        #: `time.monotonic()` of the last poll that SQS answered as it should, and of the moment
        #: since which it had a reason to: None where no slot is free.
        self.last_answered: float | None = None
        self.unanswered_since: float | None = None

    def start(self) -> None:
        """Begin to poll."""
        if self.state is PollerState.STOPPED:
            self._schedule(0.0)

    def slot_freed(self) -> None:
        """Begin a poll soon, together with other slots that become free now."""
        if self._paused:
            return
        self._begin_extra()
        if self.state is PollerState.FULL and not self._budget.free:
            if self._budget.worth_a_poll:
                self._schedule(0.0)
        elif self.state is PollerState.FULL and self._budget.held:
            self._schedule(min(max(self._round_trip, GATHER[0]), GATHER[1]))
            self.state = PollerState.GATHERING
        elif self.state in (PollerState.FULL, PollerState.GATHERING) and not self._budget.held:
            self._schedule(0.0)  # there are no others

    def pause(self) -> None:
        """Begin no poll until `resume`. What the poll in flight brings is received."""
        self._paused = True
        self.unanswered_since = None
        if self.state in (PollerState.GATHERING, PollerState.SCHEDULED):
            self._become_full()

    def resume(self) -> None:
        """Poll again."""
        self._paused = False
        if self.state is PollerState.FULL:
            self._schedule(0.0)

    def leave(self) -> None:
        """Poll no more. What the poll in flight brings is released."""
        self._cancel_timer()
        self.unanswered_since = None
        self.state = PollerState.LEAVING if self._in_flight else PollerState.STOPPED

    @property
    def _in_flight(self) -> int:
        return len(self._extra_polls) + (self._poll_in_flight is not None)

    def _schedule(self, delay: float) -> None:
        if self._paused:
            self._become_full()
            return
        self._cancel_timer()
        self.state = PollerState.SCHEDULED
        self.unanswered_since = self.unanswered_since or time.monotonic()
        self._due_at = time.monotonic() + delay
        self._timer = self._hub.call_later(delay, self._poll)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _become_full(self) -> None:
        self._cancel_timer()
        self.state = PollerState.FULL
        self.unanswered_since = None

    def _poll(self) -> None:
        self._timer = None
        count = self._budget.reserve(self.queue)
        if not count:
            self._become_full()
            return
        wait = self._policy.long_poll
        if not self._budget.free:
            wait = min(wait, BUFFER_POLL)
            self.unanswered_since = None
        self.state = PollerState.POLLING
        self._poll_in_flight = poll = _Poll(count)
        self._call(poll, wait)
        self._begin_extra()

    def _begin_extra(self) -> None:
        """Begin more polls, while there is a backlog and room for what they bring."""
        if self.state is not PollerState.POLLING or self._paused:
            return
        while (
            self._backlog
            and len(self._extra_polls) < MAX_EXTRA_POLLS
            and self._budget.reserve_extra()
        ):
            wait = min(self._policy.long_poll, BUFFER_POLL)
            self._extra_polls.add(poll := _Poll(MAX_MESSAGES))
            self._call(poll, wait)

    def _call(self, poll: _Poll, wait: int) -> None:
        """Send it. The answer may come before this returns."""
        self._counts["polls"] += 1
        self.polled_at = poll.began_at

        def sent() -> None:
            poll.sent_at = time.monotonic()

        self._sqs.call(
            "ReceiveMessage",
            {
                "QueueUrl": self._url,
                "MaxNumberOfMessages": poll.asked,
                "WaitTimeSeconds": wait,
                "VisibilityTimeout": self._policy.visibility_timeout,
                "MessageSystemAttributeNames": ["ApproximateReceiveCount"],
            },
            timeout=self._policy.poll_timeout,
            done=lambda result: self._answered(poll, result),
            sent=sent,
        )

    def supervise(self) -> None:
        """Make up for an answer that never came, or a timer that did not fire."""
        now = time.monotonic()
        for poll in [*self._extra_polls, *filter(None, [self._poll_in_flight])]:
            if now - poll.began_at > self._policy.poll_timeout + LATE:
                self._answered(poll, SQSError(0, NO_ANSWER, "the answer was lost"))
        if self.state is PollerState.LEAVING and not self._in_flight:
            self.state = PollerState.STOPPED
        elif (
            (self.state is PollerState.POLLING and self._poll_in_flight is None)
            or (self.state in (PollerState.SCHEDULED, PollerState.GATHERING) and self._is_late(now))
            or (self.state is PollerState.FULL and self._budget.free)
        ):
            self._schedule(0.0)

    def _is_late(self, now: float) -> bool:
        return now - self._due_at > LATE

    def _answered(self, poll: _Poll, result: Result) -> None:
        is_extra = poll in self._extra_polls
        if is_extra:
            self._extra_polls.discard(poll)
            self._budget.unreserve_extra()
        elif self._poll_in_flight is poll:
            self._poll_in_flight = None
            self._budget.unreserve(self.queue)
        else:
            return  # given up already
        try:
            self._take(poll, result, is_extra=is_extra)
        except Exception:
            log.exception("poll_answer_failed", extra={"queue": self.queue})
        finally:
            if self.state is PollerState.POLLING and self._poll_in_flight is None:
                self._schedule(POLL_BACKOFF[0])

    def _take(self, poll: _Poll, result: Result, *, is_extra: bool) -> None:
        messages = self._read(poll, result)
        if self.state in (PollerState.LEAVING, PollerState.STOPPED):
            if not self._in_flight:
                self.state = PollerState.STOPPED
            if isinstance(messages, list):
                self._release(messages)
            return
        if isinstance(messages, SQSError):
            self._backlog = False
            self._failed(messages, again=not is_extra)
            return
        self._backlog = len(messages) == poll.asked == MAX_MESSAGES
        now = time.monotonic()
        self.last_answered = now
        if messages:
            self._round_trip = now - poll.sent_at
        if not is_extra:
            self.failures = 0
            self.unanswered_since = now
            early = now - poll.sent_at < min(1.0, self._policy.long_poll or math.inf)
            if messages or self._budget.free:
                self._schedule(EMPTY_PAUSE if early and not messages else 0.0)
            else:
                self._become_full()
        self._receive(messages)
        self._begin_extra()

    def _read(self, poll: _Poll, result: Result) -> list[ReceivedMessage] | SQSError:
        if isinstance(result, SQSError):
            return result
        elements = result.get("Messages") or []
        if not isinstance(elements, list):
            return SQSError(200, GARBAGE, "Messages is not a list")
        read = [
            read_received(
                element,
                queue=self.queue,
                received_at=poll.sent_at,
                visibility_timeout=self._policy.visibility_timeout,
            )
            for element in elements
        ]
        if None in read:
            log.error("message_without_handle", extra={"queue": self.queue})
        messages = [message for message in read if message is not None]
        self._counts["received"] += len(messages)
        return messages

    def _failed(self, error: SQSError, *, again: bool) -> None:
        self.failures += 1
        self._counts["polls_failed"] += 1
        delay = full_jitter(self.failures - 1, POLL_BACKOFF)
        log.warning(
            "poll_failed",
            extra={
                "queue": self.queue,
                "status": error.status,
                "code": error.code,
                "error": error.message[:200],
                "failures": self.failures,
                "retry_in": round(delay, 3),
            },
        )
        notify(self._observer.poll_failed, self.queue)
        if again:
            self._schedule(delay)
