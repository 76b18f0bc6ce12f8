"""What a Celery worker tells of itself."""

import sys
from typing import Any

from skincare.telemetry.identity import identify
from skincare.telemetry.task_context import follow_tasks
from skincare.telemetry.transport_metrics import count_transport_events


def prepare_worker(*, instance: Any, **_: Any) -> None:
    """Set up this process, which is a worker that starts. Connect it to Celery's `celeryd_init`."""
    identify("worker")
    follow_tasks()
    count_transport_events()
    if not sys.stdout.isatty():
        instance.quiet = True  # the banner at the start is no JSON
