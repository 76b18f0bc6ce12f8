"""Ending a worker without losing time, work or messages.

Celery leaves its event loop at SIGTERM and then joins the pool, which blocks: answers to polls are
dropped and deletes wait. Here the loop goes on until nothing is under way, and only then Celery is
told to stop.
"""

import logging
import os
import signal
import socket
import threading
import time
from contextlib import suppress
from typing import Any, NoReturn

from celery import signals
from celery.exceptions import WorkerShutdown, WorkerTerminate
from celery.platforms import EX_FAILURE, EX_OK
from kombu.asynchronous import Hub

from skincare.sqs.consumer import Consumer
from skincare.sqs.policy import STOP_RESERVE, SQSPolicy
from skincare.sqs.watchdog import kill_process

log = logging.getLogger(__name__)

#: Seconds for making messages visible when the worker has to end at once. A poll in flight
#: often gets them again; closing it earlier would hide them for the visibility timeout.
TERMINATE_GRACE = 2.0
#: Seconds for the pool's processes to end by themselves when no task runs any more; Celery would
#: wait for a frozen one for ever.
POOL_GRACE = 5.0


class Shutdown:
    """What SIGTERM, SIGINT and SIGQUIT do to a worker that runs.

    The first SIGTERM or SIGINT drains: no new poll; what the poll in flight brings is released;
    running tasks end and their messages are settled; exit 0. A second one, or SIGQUIT, kills the
    running tasks, releases their messages, and exits 1.
    """

    def __init__(
        self, hub: Hub, consumer: Consumer, celery_consumer: Any, policy: SQSPolicy
    ) -> None:
        self._hub = hub
        self._consumer = consumer
        self._celery_consumer = celery_consumer
        self._policy = policy
        self._pid = os.getpid()
        self._asked = 0
        self._now = False
        self._terminating = False
        self._limit: Any = None
        self._wakeup_reader, self._wakeup_writer = socket.socketpair()
        self._wakeup_reader.setblocking(False)
        self._wakeup_writer.setblocking(False)

    def install(self) -> None:
        """Take the signals over from Celery, from the main thread."""
        self._hub.add_reader(self._wakeup_reader, self._on_wakeup)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: Any) -> None:
        # Runs between any two steps of the loop, which an interrupted wait does not leave by
        # itself: note it and wake the loop up.
        if os.getpid() != self._pid:  # a child that has not reset its signals yet
            os._exit(EX_FAILURE)
        self._asked += 1
        self._now = self._now or number == signal.SIGQUIT or self._asked > 1
        with suppress(OSError):  # full: the loop is being woken up already
            self._wakeup_writer.send(b"\0")

    def _on_wakeup(self) -> None:
        self._wakeup_reader.recv(4096)
        if self._terminating:
            self._end_at_once()
        elif self._now:
            self.terminate()
        else:
            self.drain()

    def drain(self) -> None:
        """Stop when nothing is under way any more, and at the latest before the platform kills."""
        log.info("worker_draining", extra={"running": self._consumer.running})
        self._announce("SIGTERM", "Warm", EX_OK)
        self._consumer.leave()
        self._hub.on_tick.add(self._stop_if_finished)
        self._limit = self._hub.call_later(
            max(self._policy.stop_timeout - STOP_RESERVE, 0.0), self._drain_took_too_long
        )

    def _stop_if_finished(self) -> None:
        if self._consumer.finished:
            log.info("worker_drained")
            self._stop()

    def _drain_took_too_long(self) -> None:
        log.error("worker_drain_too_slow", extra={"running": self._consumer.running})
        if self._consumer.running:
            self.terminate()
        else:  # processed, but SQS does not take the deletes; closing the channel tries once more
            self._stop()

    def _stop(self) -> NoReturn:
        if self._limit is not None:
            self._limit.cancel()
        processes = list(self._celery_consumer.pool._pool._pool)
        threading.Thread(target=_end_frozen, args=[processes], daemon=True).start()
        raise WorkerShutdown(EX_OK)

    def terminate(self) -> None:
        """Kill the running tasks and give their messages back, then stop."""
        log.warning("worker_terminating", extra={"running": self._consumer.running})
        self._announce("SIGQUIT", "Cold", EX_FAILURE)
        self._terminating = True
        self._hub.on_tick.discard(self._stop_if_finished)
        self._celery_consumer.pool.close()  # so that it replaces no process
        for process in self._celery_consumer.pool._pool._pool:
            kill_process(process.pid)
        self._consumer.leave()
        self._consumer.release_all()
        self._hub.on_tick.add(self._end_if_finished)
        self._hub.call_later(TERMINATE_GRACE, self._end_at_once)

    def _announce(self, sig: str, how: str, exitcode: int) -> None:
        # As Celery's own handlers do.
        signals.worker_shutting_down.send(
            sender=self._celery_consumer.hostname, sig=sig, how=how, exitcode=exitcode
        )

    def _end_if_finished(self) -> None:
        if self._consumer.finished:
            self._end_at_once()

    def _end_at_once(self) -> None:
        self._celery_consumer.controller.exitcode = EX_FAILURE
        raise WorkerTerminate(EX_FAILURE)


def _end_frozen(processes: list[Any]) -> None:
    time.sleep(POOL_GRACE)
    for process in processes:
        if process.is_alive():
            log.error("process_does_not_end", extra={"hung_process": process.pid})
            with suppress(OSError):
                kill_process(process.pid)


def isolate_process(**_: Any) -> None:
    """Put a new process of the pool in a group of its own.

    So a SIGTERM to the worker's whole group, as some supervisors and shells send it, does not kill
    the tasks that the worker is waiting for. billiard kills the group of a process that leads one.
    """
    os.setpgid(0, 0)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
