"""Wait for a condition, not for a time."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_LOAD = Path("/proc/loadavg")
#: Longest pause before a condition is asked for again, in seconds.
_LONGEST_PAUSE = 0.1


def wait_until(
    condition: Callable[[], object], *, seconds: float, what: str, every: float = 0.02
) -> None:
    """Return as soon as `condition()` is true, asking `every` some seconds at first.

    The longer it waits, the more rarely, but ten times a second: whoever asks takes time from what
    is waited for.
    Raises TimeoutError, which names `what` was waited for, after `seconds`; on a machine that had
    more to do than it has cores, after as many times more.
    """
    started = time.monotonic()
    slower = busyness()
    while not condition():
        slower = max(slower, busyness())
        waited = time.monotonic() - started
        if waited > seconds * slower:
            raise TimeoutError(f"gave up after {seconds:g} s of waiting for {what}")
        time.sleep(max(every, min(waited / 20, _LONGEST_PAUSE)))


def busyness() -> float:
    """Return how many times longer things may take here now: runnable processes for each core."""
    return max(1.0, max(os.getloadavg()[0], _runnable()) / (os.cpu_count() or 1))


def _runnable() -> int:
    """Return how many threads want a core at this moment; 0 where the system does not say.

    The average follows what begins all at once only after half a minute.
    https://man7.org/linux/man-pages/man5/proc_loadavg.5.html
    """
    with suppress(OSError):
        return int(_LOAD.read_text().split()[3].partition("/")[0])
    return 0
