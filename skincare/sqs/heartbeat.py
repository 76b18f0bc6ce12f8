"""The event loop's sign of life: a small JSON file, and every minute a line of numbers."""

import json
import logging
import os
import time
from collections import Counter
from pathlib import Path

from kombu.asynchronous import Hub

from skincare.sqs.intake import Intake

log = logging.getLogger(__name__)

#: Seconds between two writes of the file. Each wakes the loop up, so it is not short.
INTERVAL = 5.0
#: Seconds between two lines of numbers.
COUNTS_INTERVAL = 60.0


class Heartbeat:
    """Writes what `skincare.sqs.health` reads."""

    def __init__(self, intake: Intake, path: str) -> None:
        self._intake = intake
        self._path = Path(path)
        self._told: dict[str, Counter[str]] = {}

    def start(self, hub: Hub) -> None:
        """Write now, and from the loop as long as it runs."""
        self.write()
        hub.call_repeatedly(INTERVAL, self.write)
        hub.call_repeatedly(COUNTS_INTERVAL, self.tell_counts)

    def write(self) -> None:
        """Replace the file. A full disk makes the worker unhealthy, it does not stop it."""
        report = {
            "pid": os.getpid(),
            "state": "draining" if self._intake.leaving else "running",
            "last_tick": time.monotonic(),
            "queues": self._intake.status(),
        }
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            temporary.write_text(json.dumps(report))
            temporary.replace(self._path)
        except OSError as error:
            log.error("health_file_not_written", extra={"error": error.strerror})

    def tell_counts(self) -> None:
        """Log how many polls, messages and outcomes there were since the last time."""
        for queue, counts in self._intake.counts().items():
            told = self._told.get(queue, Counter())
            self._told[queue] = counts.copy()
            log.info("queue_counts", extra={"queue": queue, **(counts - told)})
