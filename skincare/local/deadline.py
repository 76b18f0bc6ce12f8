"""Wait for a condition, not for a time."""

import time
from collections.abc import Callable


def wait_until(
    condition: Callable[[], object], *, seconds: float, what: str, every: float = 0.02
) -> None:
    """Return as soon as `condition()` is true, asking `every` some seconds.

    Raises TimeoutError, which names `what` was waited for, after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(every)
