"""The worker's own parts: Celery's consumer without what SQS has no use for."""

from typing import Any

from celery import bootsteps
from celery.worker.consumer.connection import Connection
from celery.worker.consumer.consumer import Consumer as CeleryConsumer
from celery.worker.consumer.consumer import Evloop
from celery.worker.consumer.tasks import Tasks
from kombu.asynchronous import Hub

from skincare.sqs.heartbeat import Heartbeat
from skincare.sqs.shutdown import Shutdown


class Upkeep(bootsteps.StartStopStep):
    """Health file, counts and signals, as long as the event loop runs."""

    requires = (Tasks,)

    def __init__(self, consumer: Any, **options: Any) -> None:
        super().__init__(consumer, **options)
        self._heartbeat: Heartbeat | None = None

    def register_with_event_loop(self, consumer: Any, hub: Hub) -> None:
        """Celery calls this right before the loop starts."""
        channel = consumer.task_consumer.channel
        policy = channel.wiring.policy
        self._heartbeat = Heartbeat(channel.intake, policy.health_file)
        self._heartbeat.start(hub)
        Shutdown(hub, channel.intake, consumer, policy).install()

    def stop(self, consumer: Any) -> None:
        """Celery calls this when the loop has ended."""
        if self._heartbeat is not None:
            self._heartbeat.tell_counts()


class Consumer(CeleryConsumer):
    """Without mingle, gossip, events, heartbeats and remote control: they need a broker that can
    broadcast, and wake an idle worker up every second or two."""

    event_dispatcher = None

    class Blueprint(CeleryConsumer.Blueprint):
        name = "Consumer"
        default_steps = (Connection, Tasks, Upkeep, Evloop)
