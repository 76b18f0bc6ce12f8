"""Celery's pool of processes, with less to do in the event loop for each task.

Celery asks epoll before each write whether an idle process can take a job, which one always can,
and for that registers or removes the descriptors of all processes at every turn of the loop. A job
is written in two calls, so that its process may wake up twice, and a result is read in two. For the
time limits Celery puts a timer on a heap for each task, where it stays until it would be due,
however soon the task has ended.
"""

import logging
import os
import pickle
import select
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

from celery.concurrency import asynpool, prefork
from kombu.asynchronous import Hub

from skincare.sqs.alarm import Alarm

log = logging.getLogger(__name__)

#: Before each message in a pipe: its length in bytes.
_HEADER = struct.Struct(">I")
#: Bytes of one read: more than a process sends before it gets another job, unless it failed badly.
_CHUNK = 65_536


def split(received: bytes) -> tuple[list[bytes], bytes]:
    """Return the messages that are whole, and the beginning of one that is not."""
    messages = []
    start = 0
    while len(received) >= (body := start + _HEADER.size):
        end = body + _HEADER.unpack_from(received, start)[0]
        if end > len(received):
            break
        messages.append(received[body:end])
        start = end
    return messages, received[start:]


class ResultHandler(asynpool.ResultHandler):
    """Reads at once all that a process has said: mostly that it took a job, and how that ended."""

    def _make_process_result(self, hub: Hub) -> Callable[[int], None]:
        def on_readable(fd: int) -> None:
            if fd not in self.fileno_to_outq:  # its process is gone
                hub.remove_reader(fd)
                return
            try:
                received = os.read(fd, _CHUNK)
            except BlockingIOError:
                return
            except OSError:
                received = b""
            if not received:
                hub.remove_reader(fd)
                return
            messages, rest = split(received)
            if rest:
                hub.add_reader(fd, self._read_rest(hub, fd, rest))
            for message in messages:
                self._take_in(message)

        return on_readable

    def _read_rest(self, hub: Hub, fd: int, received: bytes) -> Iterator[None]:
        """Complete one message, a part at each step.

        By its being a generator Celery knows, when it stops, that a message is under way.
        """
        while missing := _missing(received):
            try:
                part = os.read(fd, missing)
            except BlockingIOError:
                yield
                continue
            if not part:
                raise OSError("the process ended within a message")
            received += part
        hub.add_reader(fd, self.handle_event, fd)
        self._take_in(received[_HEADER.size :])

    def _take_in(self, message: bytes) -> None:
        if said := pickle.loads(message):  # noqa: S301 - from our own child
            self.on_state_change(said)


def _missing(received: bytes) -> int:
    """Return how many more bytes are known to belong to the message that `received` begins."""
    if len(received) < _HEADER.size:
        return _HEADER.size - len(received)
    return _HEADER.size + _HEADER.unpack_from(received)[0] - len(received)


class TimeLimits:
    """Calls `soft` and `hard` with the number of a job that has run for as long as it may.

    One alarm serves all jobs. It waits for the limit that comes first, and mostly finds that its
    job has ended.
    """

    def __init__(
        self, hub: Hub, *, soft: Callable[[int], object], hard: Callable[[int], object]
    ) -> None:
        self._soft = soft
        self._hard = hard
        #: By job, what is still to come: at which `time.monotonic()`, and what to call then.
        self._limits: dict[int, list[tuple[float, Callable[[int], object]]]] = {}
        self._alarm = Alarm(hub, self._expire)

    def start(self, job: int, *, soft: float | None, hard: float | None) -> None:
        """Count from now, in seconds; None is no limit."""
        now = time.monotonic()
        limits = [(now + soft, self._soft)] if soft else []
        if hard:
            limits.append((now + hard, self._hard))
        if limits:
            self._limits[job] = limits
            self._wait_until(limits[0][0])

    def end(self, job: int) -> None:
        """Forget a job."""
        self._limits.pop(job, None)

    def _wait_until(self, at: float) -> None:
        if self._alarm.at is None or at < self._alarm.at:
            self._alarm.set(at)

    def _expire(self) -> None:
        now = time.monotonic()
        for job, limits in list(self._limits.items()):
            if limits[0][0] <= now:
                self._reach(job, limits)
        # A copy, because Celery runs the timers in a thread while it joins the pool.
        for limits in list(self._limits.values()):
            self._wait_until(limits[0][0])

    def _reach(self, job: int, limits: list[tuple[float, Callable[[int], object]]]) -> None:
        _, call = limits.pop(0)
        if not limits:
            self.end(job)
        try:
            call(job)
        except Exception:  # the other jobs have limits too
            log.exception("time_limit_not_enforced", extra={"job": job})


class ProcessPool(asynpool.AsynPool):
    """Writes a job to an idle process at once, and otherwise as soon as one is idle."""

    ResultHandler = ResultHandler
    _limits: TimeLimits | None = None
    #: What takes a job; Celery's own lets it wait. And how Celery writes one, however long.
    _quick_put: Callable[[Any], None]
    _line_up: Callable[[Any], None]
    _write_in_parts: Any

    def _repopulate_pool(self, exitcodes: list[int]) -> None:
        """Start processes for those that have ended; where the system has no room, try again later.

        Celery would leave its loop, and then die of the process that has no number.
        """
        try:
            super()._repopulate_pool(exitcodes)
        except OSError as error:
            log.error("process_not_started", extra={"error": error.strerror})
            for process in [one for one in self._pool if one._popen is None]:
                self._pool.remove(process)
                self._process_cleanup_queues(process)

    def _create_timelimit_handlers(self, hub: Hub) -> None:
        # Called again when Celery starts its consumer again: tasks that run keep their limits.
        limits = self._limits = self._limits or TimeLimits(
            hub, soft=self._reach_soft_limit, hard=self._on_hard_timeout
        )
        self._discard_tref = limits.end  # what Celery calls for a job that reached its last limit
        self.on_timeout_set = lambda job, soft, hard: limits.start(job._job, soft=soft, hard=hard)
        self.on_timeout_cancel = lambda job: limits.end(job._job)

    def _reach_soft_limit(self, number: int) -> None:
        job = self._cache.get(number)
        if job is not None:
            self.on_soft_timeout(job)

    def _create_write_handlers(self, hub: Hub, **options: Any) -> None:
        super()._create_write_handlers(hub, **options)
        self._line_up = self._quick_put
        self._write_in_parts = hub.consolidate_callback
        self._quick_put = self._put
        self.on_poll_start = self._write_waiting  # called at each turn of the loop

    def _put(self, job: Any) -> None:
        self._line_up(job)
        self._write_waiting()

    def _write_waiting(self) -> None:
        while self.outbound_buffer and (fd := self._idle_process()) is not None:
            if not self._write_at_once(fd):
                self._write_in_parts([fd])

    def _idle_process(self) -> int | None:
        """Return the descriptor at which a process waits for a job."""
        for fd in self._fileno_to_inq:
            if fd not in self._busy_workers and fd not in self._active_writes:
                return fd
        return None

    def _write_at_once(self, fd: int) -> bool:
        """Write the first job that waits, if that cannot end half-way; say whether it is done."""
        job = self.outbound_buffer[0]
        header, body, size = job._payload
        if job._accepted or _HEADER.size + size > select.PIPE_BUF:
            return False
        try:
            os.write(fd, b"".join((header, body)))
        except OSError:
            return False
        self.outbound_buffer.popleft()
        process = self._fileno_to_inq[fd]
        job._scheduled_for = job._write_to = process
        self._busy_workers.add(fd)
        self.write_stats[process.index] += 1
        return True


class TaskPool(prefork.TaskPool):
    """The pool that `configure` names in `worker_pool`."""

    Pool = ProcessPool
