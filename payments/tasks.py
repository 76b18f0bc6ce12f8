"""The queue's entry into this app."""

from skincare.events.task import event_task

payment_processed = event_task("payments.payment_processed")
