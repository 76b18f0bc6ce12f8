"""The event loop's sign of life: a small JSON file, replaced every few seconds."""

import json
import logging
import os
import time
from pathlib import Path

from kombu.asynchronous import Hub

from skincare.sqs.intake import Intake

log = logging.getLogger(__name__)

#: Seconds between two writes. It wakes the loop up, so it is not short.
INTERVAL = 5.0


class Heartbeat:
    """Writes what `skincare.sqs.health` reads."""

    def __init__(self, intake: Intake, path: str) -> None:
        self._intake = intake
        self._path = Path(path)

    def start(self, hub: Hub) -> None:
        """Write now, and from the loop as long as it runs."""
        self.write()
        hub.call_repeatedly(INTERVAL, self.write)

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
