"""The queue's entry into this app."""

from typing import Any

from celery import Task, shared_task

from skincare.events.consumer import process


@shared_task(bind=True, name="payments.payment_processed")
def payment_processed(self: Task, document: dict[str, Any]) -> None:
    """Process one event; see `skincare.events.consumer.process` for what it raises."""
    process(document, receive_count=self.request.receive_count, worker=self.request.hostname)
