"""Which Celery task an event belongs to, for the relay and for bare events found on the queue."""

from typing import Any, Final

from skincare.events.schema import parse_event
from skincare.sqs.decoder import AdaptedCall

ORDER_TASK: Final = "orders.order_confirmed"
PAYMENT_TASK: Final = "payments.payment_processed"


def task_for(event_type: str) -> str:
    """Return the name of the task that processes events of this type.

    Both tasks call the same consumer, which records a type that it does not know as skipped; so an
    unknown type needs a task too.
    """
    return ORDER_TASK if event_type.startswith("order.") else PAYMENT_TASK


def adapt(document: dict[str, Any]) -> AdaptedCall:
    """Turn a bare event found on the queue into the call of its task, with the event id as task id.

    Raises `InvalidEvent` (a ValueError) where the document breaks the contract.
    """
    event = parse_event(document)
    return AdaptedCall(task=task_for(event.event_type), task_id=event.event_id, args=(document,))
