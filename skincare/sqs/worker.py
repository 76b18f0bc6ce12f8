"""The worker's own parts: Celery's consumer without what SQS has no use for, and a sign of life."""

import json
import logging
import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from celery import bootsteps
from celery.worker.consumer.connection import Connection
from celery.worker.consumer.consumer import Consumer as CeleryConsumer
from celery.worker.consumer.consumer import Evloop
from celery.worker.consumer.tasks import Tasks
from kombu.asynchronous import Hub

from skincare.sqs.consumer import Consumer
from skincare.sqs.health import health_file_of_process, start_of_process
from skincare.sqs.shutdown import Shutdown
from skincare.sqs.task import TaskMessage

log = logging.getLogger(__name__)

#: Seconds between two writes of the file. Each wakes the loop up, so it is not short.
INTERVAL = 5.0
#: Seconds between two lines of numbers.
COUNTS_INTERVAL = 60.0


class Heartbeat:
    """Writes the file that `skincare.sqs.health` reads, and every minute a line of numbers."""

    def __init__(self, consumer: Consumer, path: str) -> None:
        self._consumer = consumer
        self._path = health_file_of_process(path)
        self._started = start_of_process(os.getpid())
        self._logged: dict[str, Counter[str]] = {}

    def start(self, hub: Hub) -> None:
        """Write now, and from the loop as long as it runs."""
        self.write()
        hub.call_repeatedly(INTERVAL, self.beat)
        hub.call_repeatedly(COUNTS_INTERVAL, self.log_counts)

    def beat(self) -> None:
        """Look after the consumer, and write."""
        try:
            self._consumer.supervise()
        finally:
            self.write()

    def write(self) -> None:
        """Replace the file. A full disk makes the worker unhealthy, it does not stop it."""
        report = {
            "pid": os.getpid(),
            "started": self._started,
            "stuck": self._consumer.stuck,
            "state": "draining" if self._consumer.leaving else "running",
            "last_tick": time.monotonic(),
            "queues": self._consumer.status(),
        }
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            temporary.write_text(json.dumps(report))
            temporary.replace(self._path)
        except OSError as error:
            log.error("health_file_not_written", extra={"error": error.strerror})

    def log_counts(self) -> None:
        """Log how many polls, messages and outcomes there were since the last time."""
        for queue, counts in self._consumer.counts().items():
            logged = self._logged.get(queue, Counter())
            self._logged[queue] = counts.copy()
            log.info("queue_counts", extra={"queue": queue, **(counts - logged)})


class Lifecycle(bootsteps.StartStopStep):
    """Celery's step for health file, counts and signals, as long as the event loop runs."""

    requires = (Tasks,)

    def __init__(self, consumer: Any, **options: Any) -> None:
        super().__init__(consumer, **options)
        self._heartbeat: Heartbeat | None = None

    def register_with_event_loop(self, consumer: Any, hub: Hub) -> None:
        """Celery calls this right before the loop starts."""
        channel = consumer.task_consumer.channel
        policy = channel.wiring.policy
        self._heartbeat = Heartbeat(channel.consumer, policy.health_file)
        self._heartbeat.start(hub)
        Shutdown(hub, channel.consumer, consumer, policy).install()

    def stop(self, consumer: Any) -> None:
        """Celery calls this when the loop has ended."""
        if self._heartbeat is not None:
            self._heartbeat.log_counts()


class WorkerConsumer(CeleryConsumer):
    """Without mingle, gossip, events, heartbeats and remote control: they need a broker that can
    broadcast, and wake an idle worker up every second or two."""

    event_dispatcher = None

    class Blueprint(CeleryConsumer.Blueprint):
        name = "Consumer"
        default_steps = (Connection, Tasks, Lifecycle, Evloop)

    def create_task_handler(self, **_: Any) -> Callable[[TaskMessage], None]:
        """Return what starts a task for a message.

        Celery's own is made for messages that nobody has read yet, and prepares for each an
        acknowledgement that here only a request makes.
        """
        strategies = self.strategies

        def start(message: TaskMessage) -> None:
            strategies[message.call.task](message)

        return start
