"""Wait for a condition, not for a time."""

import os
import time
from collections.abc import Callable


def wait_until(
    condition: Callable[[], object], *, seconds: float, what: str, every: float = 0.02
) -> None:
    """Return as soon as `condition()` is true, asking `every` some seconds.

    Raises TimeoutError, which names `what` was waited for, after `seconds`; on a machine that has
    more to do than it has cores, after as many times more.
    """
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > seconds * busyness():
            raise TimeoutError(f"gave up after {seconds:g} s of waiting for {what}")
        time.sleep(every)


def busyness() -> float:
    """Return how many times longer things may take here now: runnable processes for each core."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
