"""A bar on a terminal's stderr for work that takes a while; nothing anywhere else."""

import sys
import time
from types import TracebackType
from typing import Final, Self, TextIO

_WIDTH: Final = 40  # characters
_REDRAW_SECONDS: Final = 0.1


class ProgressBar:
    """Call it with how much is done and how much there is; leaving the `with` clears the line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_on = self._stream.isatty()
        self._drawn_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __call__(self, done: int, total: int) -> None:
        if not self._is_on or time.monotonic() - self._drawn_at < _REDRAW_SECONDS:
            return
        self._drawn_at = time.monotonic()
        filled = _WIDTH * done // max(total, 1)
        bar = "#" * filled + "-" * (_WIDTH - filled)
        self._stream.write(f"\r[{bar}] {done} of about {total}")
        self._stream.flush()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_on:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
