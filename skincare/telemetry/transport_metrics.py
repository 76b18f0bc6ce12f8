"""Counts what the transport reports; it knows neither this project nor its metrics."""

from collections import OrderedDict
from typing import Final

from skincare.sqs.policy import Observer
from skincare.telemetry import metrics

_REMEMBERED: Final = 1000  # messages


class TransportMetrics(Observer):
    """Counts failed polls; denied deletes; quarantined messages once each, however often they come
    back; and tasks whose process was killed or died, which can count nothing any more."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, None] = OrderedDict()

    def poll_failed(self, queue: str) -> None:
        metrics.count("PollFailures")

    def acknowledgement_denied(self, action: str) -> None:
        if action == "DeleteMessageBatch":
            metrics.count("DeletesDenied")

    def message_quarantined(self, message_id: str) -> None:
        if message_id in self._seen:
            return
        self._seen[message_id] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        metrics.count("EventsQuarantined")

    def task_lost(self, task: str) -> None:
        metrics.count("EventsFailed")
