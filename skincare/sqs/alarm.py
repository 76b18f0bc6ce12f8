"""A timer for a moment that keeps changing, which leaves little behind in the event loop."""

import time
from collections.abc import Callable

from kombu.asynchronous import Hub


class Alarm:
    """Calls `ring` at a moment that may be changed at any time.

    kombu keeps a timer that was cancelled on its heap until it would have been due. So none is
    cancelled here: one that fires finds out whether it is time, and another is only set for a
    moment before which none fires.
    """

    def __init__(self, hub: Hub, ring: Callable[[], object]) -> None:
        self._hub = hub
        self._ring = ring
        #: When timers fire, the next one last.
        self._timers: list[float] = []
        #: `time.monotonic()` at which it rings; None where it does not.
        self.at: float | None = None

    def set(self, at: float) -> None:
        """Ring once `time.monotonic()` is `at`, and not at the moment that was set before."""
        self.at = at
        if not self._timers or at < self._timers[-1]:
            self._timers.append(at)
            self._hub.call_later(max(at - time.monotonic(), 0.0), self._fired)

    def unset(self) -> None:
        """Do not ring."""
        self.at = None

    def _fired(self) -> None:
        self._timers.pop()
        if self.at is None:
            return
        if self.at > time.monotonic():
            self.set(self.at)
        else:
            self.at = None
            self._ring()
