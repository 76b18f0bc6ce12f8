"""Counts what the transport logs: it knows neither this project nor its metrics."""

import logging
from collections import OrderedDict
from typing import Any, Final

from skincare.telemetry import metrics

_REMEMBERED: Final = 1000  # messages


class TransportMetrics(logging.Handler):
    """Counts failed polls, and quarantined messages once each, however often they come back."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: OrderedDict[Any, None] = OrderedDict()

    def emit(self, record: logging.LogRecord) -> None:
        """Count the record, if it is one of those."""
        if record.msg == "poll_failed":
            metrics.count("PollFailures")
        elif record.msg == "message_quarantined" and self._is_new(record):
            metrics.count("EventsQuarantined")

    def _is_new(self, record: logging.LogRecord) -> bool:
        message_id = getattr(record, "sqs_message_id", None)
        if message_id in self._seen:
            return False
        self._seen[message_id] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return True


def count_transport_events() -> None:
    """Turn the transport's log lines into metrics from now on."""
    transport = logging.getLogger("skincare.sqs")
    if not any(isinstance(handler, TransportMetrics) for handler in transport.handlers):
        transport.addHandler(TransportMetrics())
