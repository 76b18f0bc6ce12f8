"""Counts what the transport and Celery log: they know neither this project nor its metrics."""

import logging
from collections import OrderedDict
from typing import Any, Final

from skincare.telemetry import metrics
from skincare.telemetry.library_lines import HARD_TIME_LIMIT

_REMEMBERED: Final = 1000  # messages


class TransportMetrics(logging.Handler):
    """Counts failed polls; denied deletes; quarantined messages once each, however often they come
    back; and tasks whose process was killed or died, which can count nothing any more."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: OrderedDict[Any, None] = OrderedDict()

    def emit(self, record: logging.LogRecord) -> None:
        """Count the record, if it is one of those."""
        if record.msg == "poll_failed":
            metrics.count("PollFailures")
        elif record.msg == "settlement_failed" and _is_denied_delete(record):
            metrics.count("DeletesDenied")
        elif record.msg == "message_quarantined" and self._is_new(record):
            metrics.count("EventsQuarantined")
        elif record.msg == "task_process_lost" or str(record.msg).startswith(HARD_TIME_LIMIT):
            metrics.count("EventsFailed")

    def _is_new(self, record: logging.LogRecord) -> bool:
        message_id = getattr(record, "sqs_message_id", None)
        if message_id in self._seen:
            return False
        self._seen[message_id] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return True


def _is_denied_delete(record: logging.LogRecord) -> bool:
    # The transport logs a denied call as an error, and any other that fails as a warning.
    action = getattr(record, "action", "")
    return record.levelno >= logging.ERROR and action == "DeleteMessageBatch"


def count_transport_events() -> None:
    """Turn their log lines into metrics from now on. Call it once in a worker."""
    handler = TransportMetrics()
    for name in ("skincare.sqs", "celery.worker.request"):
        logging.getLogger(name).addHandler(handler)
