"""How a Celery worker logs, and as which service."""

import logging
import sys
from typing import Any

from celery.utils.log import get_multiprocessing_logger

from skincare.telemetry.identity import identify


def prepare_worker(*, instance: Any, **_: Any) -> None:
    """Set up this process, which is a worker that starts. Connect it to Celery's `celeryd_init`."""
    identify("worker")
    if not sys.stdout.isatty():
        instance.quiet = True  # the banner at the start is not JSON


def keep_logging(**_: Any) -> None:
    """Leave the logging that the settings made. Connect it to Celery's `setup_logging`, for Celery
    sets up its own where nothing is connected."""
    # What the pool says of its processes goes to stderr by itself.
    pool = get_multiprocessing_logger()
    pool.propagate = True
    pool.setLevel(logging.WARNING)  # at INFO: how it allocates memory
