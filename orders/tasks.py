"""The queue's entry into this app."""

from skincare.events.task import event_task

order_confirmed = event_task("orders.order_confirmed")
