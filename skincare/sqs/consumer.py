"""What a worker takes from its queues: polled, decoded, dispatched to Celery, acknowledged.

Everything here runs in the thread of Celery's event loop.
"""

import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from kombu.asynchronous import Hub

from skincare.sqs.acknowledger import (
    VISIBILITY_LINGER,
    Acknowledgement,
    Deletes,
    Extensions,
    VisibilityChanges,
    final_flush,
)
from skincare.sqs.async_client import AsyncSQS
from skincare.sqs.decoder import Incoming, InvalidMessage, ReceivedMessage, decode
from skincare.sqs.outage import WaitingRoom
from skincare.sqs.outcome import (
    OUTCOMES,
    TaskFailed,
    Unavailable,
    longest_backoff,
    release_delay,
    within_limits,
)
from skincare.sqs.policy import Wiring, notify
from skincare.sqs.poller import Poller, PollerState
from skincare.sqs.prefetch import PrefetchBudget, PrefetchBuffer
from skincare.sqs.validation import validate
from skincare.sqs.watchdog import Run, Watchdog, Watched, is_hung

log = logging.getLogger(__name__)


Dispatch = Callable[[Incoming], object]


@dataclass
class _Held:
    """A message that is with Celery, and since when (`time.monotonic()`)."""

    incoming: Incoming
    since: float
    run: Run | None = None

    @property
    def message(self) -> ReceivedMessage:
        return self.incoming.message


@dataclass(frozen=True)
class _QueueState:
    """What belongs to one queue."""

    url: str
    poller: Poller
    deletes: Deletes
    visibility_changes: VisibilityChanges
    extensions: Extensions
    waiting_room: WaitingRoom
    dispatch: Dispatch
    counts: Counter[str]

    @property
    def finished(self) -> bool:
        """Whether no call is under way or to come."""
        stopped = self.poller.state is PollerState.STOPPED
        calls = len(self.deletes) + len(self.visibility_changes) + len(self.extensions)
        calls += len(self.waiting_room)
        return stopped and not calls


class Consumer:
    """The messages of one worker, from receive to outcome."""

    def __init__(self, hub: Hub, wiring: Wiring, *, capacity: int) -> None:
        self._hub = hub
        self._wiring = wiring
        self.observer = wiring.observer
        self._sqs = AsyncSQS(hub, wiring)
        self._queues: dict[str, _QueueState] = {}
        self._held: dict[str, _Held] = {}
        self._buffer: PrefetchBuffer[Incoming] = PrefetchBuffer()
        self._buffer_timer: Any = None
        self._tags = itertools.count(1)
        self.budget = PrefetchBudget(capacity)
        self.leaving = False
        self._watchdog = Watchdog(wiring.policy)

    # -- Polling -----------------------------------------------------------------------------------

    def start(self, queue: str, dispatch: Dispatch) -> None:
        """Poll the queue, and give what comes to `dispatch`."""
        policy = self._wiring.policy
        url = self._wiring.queues[queue]
        counts: Counter[str] = Counter()
        poller = Poller(
            self._hub,
            self._sqs,
            queue=queue,
            url=url,
            policy=policy,
            budget=self.budget,
            counts=counts,
            observer=self.observer,
            receive=self._receive,
            release=self._release_all,
        )
        batched: dict[str, Any] = {
            "url": url,
            "call_timeout": policy.call_timeout,
            "counts": counts,
            "observer": self.observer,
        }
        deletes = Deletes(self._hub, self._sqs, linger=policy.delete_linger, **batched)
        changes = VisibilityChanges(self._hub, self._sqs, linger=VISIBILITY_LINGER, **batched)
        extensions = Extensions(self._hub, self._sqs, linger=VISIBILITY_LINGER, **batched)
        room = WaitingRoom(
            self._hub,
            poller,
            extensions,
            policy=policy,
            budget=self.budget,
            start=self._start,
        )
        self._queues[queue] = _QueueState(
            url, poller, deletes, changes, extensions, room, dispatch, counts
        )
        self.budget.queues = len(self._queues)
        poller.start()

    def resize(self, capacity: int) -> None:
        """Hold up to `capacity` messages from now on."""
        self.budget.capacity = capacity
        self._start_waiting()
        self._slots_changed()

    def freeze(self) -> None:
        """Make no call any more, because the event loop is over. `close` ends what is left."""
        self.leaving = True
        for state in self._queues.values():
            state.poller.leave()
            state.deletes.freeze()
            state.visibility_changes.freeze()
            state.extensions.freeze()
        self._sqs.close()

    def leave(self) -> None:
        """Poll no queue any more, and start no task that has not started."""
        self.leaving = True
        waiting = self._buffer.clear()
        for state in self._queues.values():
            state.poller.leave()
            waiting += state.waiting_room.clear()
        self._release_all([incoming.message for incoming in waiting])
        self._update_buffer()

    @property
    def running(self) -> int:
        """How many messages are with Celery."""
        return len(self._held)

    @property
    def finished(self) -> bool:
        """Whether no message and no call is under way."""
        return (
            not self._held
            and not self._buffer
            and all(state.finished for state in self._queues.values())
        )

    # -- Arrival -----------------------------------------------------------------------------------

    def _receive(self, messages: list[ReceivedMessage]) -> None:
        for message in messages:
            try:
                self._accept(message)
            except Exception:  # whatever it is, it must cost no more than this message
                log.exception("message_not_taken", extra=message.log_fields)

    def _accept(self, message: ReceivedMessage) -> None:
        try:
            call = decode(message.body, self._wiring.adapter)
            verdict = validate(
                call,
                tasks=self._wiring.tasks(),
                policy=self._wiring.policy,
                now=datetime.now(UTC),
            )
        except InvalidMessage as refused:
            self._quarantine(message, refused.reason)
        except Exception as error:  # whatever it is, it must cost no more than this message
            log.exception("message_unreadable", extra=message.log_fields)
            self._quarantine(message, f"{type(error).__name__} while it was read")
        else:
            if verdict.action == "start":
                self._dispatch_or_buffer(Incoming(message, call))
            elif verdict.action == "postpone":
                self._release(message, verdict.delay, verdict.reason)
            else:
                self._quarantine(message, verdict.reason, verdict.delay)

    def _dispatch_or_buffer(self, incoming: Incoming) -> None:
        room = self._queues[incoming.message.queue].waiting_room
        if room.is_open:
            room.add(incoming)
        elif self.budget.free:
            self._start(incoming)
        else:
            self._buffer.add(incoming)
            self._update_buffer()

    def _start(self, incoming: Incoming) -> None:
        incoming.tag = str(next(self._tags))
        self._held[incoming.tag] = _Held(incoming, time.monotonic())
        self.budget.held += 1
        try:
            self._queues[incoming.message.queue].dispatch(incoming)
        except Exception:
            log.exception("message_not_handed_over", extra=incoming.message.log_fields)
            self.quarantine(incoming.tag, "Celery did not take it")

    def _start_waiting(self) -> None:
        for state in self._queues.values():
            state.waiting_room.start_recovered()
        while self.budget.free and not self.leaving and (following := self._buffer.pop()):
            self._start(following)
        self._update_buffer()

    def _update_buffer(self) -> None:
        """Tell the pollers what waits and what may, and let nothing wait for long."""
        self.budget.buffered = len(self._buffer)
        self.budget.buffer_limit = self._buffer.limit(self.budget.capacity)
        if self._buffer and self._buffer_timer is None:
            self._buffer_timer = self._hub.call_later(self._buffer.time_left, self._expire_buffer)

    def _expire_buffer(self) -> None:
        self._buffer_timer = None
        if self._buffer and self._buffer.time_left <= 0:
            for incoming in self._buffer.expire():
                if incoming.message.receive_count > 1:
                    self._buffer.add(incoming)
                else:
                    self._release(incoming.message, 0.0, "all processes are busy")
        self._update_buffer()

    def _release_all(self, messages: list[ReceivedMessage]) -> None:
        for message in messages:
            self._release(message, 0.0, "the worker is stopping")

    # -- Outcome -----------------------------------------------------------------------------------

    def refusal(self, tag: str) -> str | None:
        """Return why the task of this message must not start any more; None where it may."""
        held = self._held.get(tag)
        if held is None:
            return "it is not held any more"
        if self.leaving:
            return "the worker is stopping"
        if held.message.seconds_left < self._wiring.policy.hard_time_limit:
            return "its visibility could end before its task"
        return None

    def executing(self, tag: str, run: Run) -> None:
        """Note that the task of this message was given to the pool."""
        if tag in self._held:
            self._held[tag].run = run

    @property
    def stuck(self) -> str:
        """Why this worker cannot go on; "" while it can."""
        return self._watchdog.stuck

    def done(self, tag: str) -> None:
        """Delete the message: its task succeeded."""
        message = self._pop(tag, succeeded=True)
        if message is not None:
            self._queues[message.queue].deletes.add(Acknowledgement(message))

    def release(self, tag: str, *, delay: float, reason: str) -> None:
        """Make the message visible again after `delay` seconds."""
        message = self._pop(tag)
        if message is not None:
            self._release(message, delay, reason)

    def fail(self, tag: str, error: BaseException | None) -> None:
        """Keep the message of a task that ended with `error`; see `outcome`."""
        if isinstance(error, Unavailable) and tag in self._held and not self.leaving:
            self._wait(tag, error)
            return
        message = self._pop(tag)
        if message is None:
            return
        policy = self._wiring.policy
        delay = release_delay(error, receive_count=message.receive_count, policy=policy)
        reason = str(error) if isinstance(error, (*OUTCOMES, TaskFailed)) else type(error).__name__
        self._release(message, delay, reason[:200])

    def quarantine(self, tag: str, reason: str) -> None:
        """Keep the message of which no task can be made, so that it reaches the DLQ."""
        message = self._pop(tag)
        if message is not None:
            self._quarantine(message, reason)

    def release_all(self) -> None:
        """Make all messages visible again, at once, whose tasks have not ended."""
        for tag in list(self._held):
            self.release(tag, delay=0.0, reason="the worker is terminated")

    def _wait(self, tag: str, lacking: Unavailable) -> None:
        incoming = self._held[tag].incoming
        incoming.resumes = lacking.resumes
        queue = incoming.message.queue
        room = self._queues[queue].waiting_room
        room.unavailable(incoming, lacking.what)
        for buffered in self._buffer.remove(lambda one: one.message.queue == queue):
            room.add(buffered)
        del self._held[tag]
        self._free_slot()

    def _pop(self, tag: str, *, succeeded: bool = False) -> ReceivedMessage | None:
        held = self._held.pop(tag, None)
        if held is None:
            return None
        if succeeded:
            self._watchdog.task_ended()
        room = self._queues[held.message.queue].waiting_room
        room.ended(held.incoming, succeeded=succeeded)
        self._buffer.observe(time.monotonic() - held.since)
        self._free_slot()
        return held.message

    def _free_slot(self) -> None:
        self.budget.held -= 1
        self._start_waiting()
        self._slots_changed()

    def _slots_changed(self) -> None:
        # The queue that has not been polled for longest is first.
        for state in sorted(self._queues.values(), key=lambda state: state.poller.polled_at):
            state.poller.slot_freed()

    def _quarantine(self, message: ReceivedMessage, reason: str, delay: float = 0.0) -> None:
        log.error("message_quarantined", extra={**message.log_fields, "reason": reason})
        self._queues[message.queue].counts["quarantined"] += 1
        notify(self.observer.message_quarantined, message.message_id)
        self._make_visible(message, delay)

    def _release(self, message: ReceivedMessage, delay: float, reason: str) -> None:
        log.info(
            "message_released",
            extra={**message.log_fields, "retry_in": round(delay, 1), "reason": reason},
        )
        self._make_visible(message, delay)

    def _make_visible(self, message: ReceivedMessage, delay: float) -> None:
        if message.receive_count > self._wiring.policy.max_receive_count:
            # It would be in the dead-letter queue by now, if the queue had one for us.
            log.error("redrive_not_working", extra=message.log_fields)
            delay = max(delay, longest_backoff(self._wiring.policy))
        state = self._queues[message.queue]
        change = Acknowledgement(message, time.monotonic() + within_limits(delay))
        state.extensions.then(message, partial(state.visibility_changes.add, change))

    def supervise(self) -> None:
        """Do what time demands. To be called every few seconds, from the loop."""
        self._end_hung()
        for incoming in self._buffer:
            state = self._queues[incoming.message.queue]
            state.extensions.extend(incoming.message, policy=self._wiring.policy)
        for state in self._queues.values():
            state.waiting_room.keep_invisible()
            state.poller.supervise()
            for acknowledger in (state.deletes, state.visibility_changes, state.extensions):
                acknowledger.supervise()

    def _end_hung(self) -> None:
        now = time.monotonic()
        for tag, held in list(self._held.items()):
            watched = Watched(held.run, held.since, held.message.log_fields)
            if is_hung(watched, policy=self._wiring.policy, now=now):
                self._watchdog.end(watched)
                notify(self.observer.task_lost, held.incoming.call.task)
                self.fail(tag, TaskFailed("its process hangs"))
        self._watchdog.supervise()

    # -- The end -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Acknowledge what is left with the blocking client, as long as it gets answers.

        After a proper shutdown nothing is left.
        """
        self.freeze()
        queues = dict(self._queues)
        unfinished = self._unfinished()
        self._held.clear()
        self._buffer.clear()
        self._queues.clear()
        for queue, state in queues.items():
            kept = [Acknowledgement(message) for message in unfinished if message.queue == queue]
            answered = final_flush(
                state.url,
                self._wiring,
                deletes=state.deletes.unfinished,
                visibility_changes=state.visibility_changes.unfinished + kept,
            )
            if not answered:
                break  # the other queues' calls would take as long, and time is short

    def _unfinished(self) -> list[ReceivedMessage]:
        waiting = [incoming.message for incoming in self._buffer]
        for state in self._queues.values():
            waiting += [incoming.message for incoming in state.waiting_room.messages]
        return [held.message for held in self._held.values()] + waiting

    def counts(self) -> dict[str, Counter[str]]:
        """Return what was counted of each queue since the start."""
        return {queue: state.counts for queue, state in self._queues.items()}

    def status(self) -> dict[str, Any]:
        """Return what the health file says of each queue."""
        return {
            queue: {
                "last_answered_poll": state.poller.last_answered,
                "unanswered_since": state.poller.unanswered_since,
                "consecutive_failures": state.poller.failures,
                "in_flight": sum(message.queue == queue for message in self._unfinished()),
                "free_slots": self.budget.free,
                "pending_deletes": len(state.deletes),
                "deletes_denied": state.deletes.denied,
                **state.waiting_room.status(),
            }
            for queue, state in self._queues.items()
        }
