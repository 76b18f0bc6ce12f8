"""What the workers asked of SQS, as the proxy counted it."""

from __future__ import annotations

from tests.faults.proxy import Call, FaultProxy
from tests.integration.sqs.queue_pair import Queue


def polls(proxy: FaultProxy, queue: Queue) -> list[Call]:
    return proxy.calls("ReceiveMessage", queue=queue.url)


def deletes(proxy: FaultProxy, queue: Queue) -> list[Call]:
    """Every call that deletes, one message or several."""
    return proxy.calls("DeleteMessage", queue=queue.url) + proxy.calls(
        "DeleteMessageBatch", queue=queue.url
    )


def deleted_handles(proxy: FaultProxy, queue: Queue) -> set[str]:
    """The receipt handles that deletes were asked for; a call without an answer is tried again."""
    return {
        entry["ReceiptHandle"]
        for call in deletes(proxy, queue)
        for entry in call.document.get("Entries", [call.document])
    }


def visibility_changes(proxy: FaultProxy, queue: Queue) -> list[int]:
    """The visibility timeouts (seconds) that were asked for, entry by entry."""
    return [
        entry["VisibilityTimeout"]
        for action in ("ChangeMessageVisibility", "ChangeMessageVisibilityBatch")
        for call in proxy.calls(action, queue=queue.url)
        for entry in call.document.get("Entries", [call.document])
    ]
