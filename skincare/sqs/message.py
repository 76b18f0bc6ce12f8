"""The kombu message of a task call. Only a task that succeeded can have it deleted."""

from typing import TYPE_CHECKING, Any

from kombu.message import Message as KombuMessage

from skincare.sqs.decoder import TaskCall
from skincare.sqs.intake import Incoming, Intake

if TYPE_CHECKING:
    from skincare.sqs.transport import Channel


class Message(KombuMessage):
    """A message in order: every part of it was made here, none is taken over unread."""

    def __init__(self, incoming: Incoming, channel: "Channel") -> None:
        self.call: TaskCall = incoming.call
        self.tag = incoming.tag
        self.intake: Intake = channel.intake
        queue = incoming.message.queue
        super().__init__(
            body="",
            channel=channel,
            delivery_tag=incoming.tag,
            content_type="application/json",
            content_encoding="utf-8",
            headers=_headers(incoming),
            delivery_info={"exchange": "", "routing_key": queue},
            properties={"correlation_id": incoming.call.task_id, "reply_to": None},
        )


def _headers(incoming: Incoming) -> dict[str, Any]:
    """Return the headers of Celery's protocol 2, and two of ours for `task.request`."""
    call, message = incoming.call, incoming.message
    return {
        **call.extra,
        "task": call.task,
        "id": call.task_id,
        "root_id": call.root_id or call.task_id,
        "parent_id": call.parent_id,
        "retries": message.receive_count - 1,
        "timelimit": [call.hard_time_limit, call.soft_time_limit],
        # Celery logs these, or the arguments themselves where they are missing.
        "argsrepr": "(…)",
        "kwargsrepr": "{…}",
        "ignore_result": True,
        "receive_count": message.receive_count,
        "sqs_message_id": message.message_id,
    }
