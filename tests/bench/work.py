"""What each contestant does with an event, and the record of when it was done.

Nothing of Django is imported until the shop's handler is asked for.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

QUEUE_URL = os.environ.get("BENCH_QUEUE_URL", "")
ENDPOINT_URL = os.environ.get("BENCH_ENDPOINT_URL", "")
HANDLER = os.environ.get("BENCH_HANDLER", "no-op")

Document = dict[str, Any]


def handler() -> Callable[[Document, int], None]:
    """The handler that BENCH_HANDLER names; it takes the document and its receive count."""
    return {"no-op": do_nothing, "shop": process_payment}[HANDLER]


def do_nothing(document: Document, receive_count: int) -> None:
    mark_done(document["event_id"])


def process_payment(document: Document, receive_count: int) -> None:
    """The shop's own work: claim the event, pay the order, sell the stock, write the receipt."""
    from skincare.events.consumer import process

    process(document, receive_count=receive_count, worker="bench")
    mark_done(document["event_id"])


_marks: int | None = None


def mark_done(event_id: str) -> None:
    """Append the time to the file that BENCH_MARKS names, in one write, which no other cuts."""
    global _marks
    if _marks is None:
        _marks = os.open(os.environ["BENCH_MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(_marks, f"{time.monotonic_ns()} {event_id}\n".encode())


class Marks:
    """Reads what the workers of one file recorded. The monotonic clock is the machine's."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._file = path.open("rb")
        self._rest = b""
        self.done: list[tuple[int, str]] = []
        """(time in ns, event id) in the order of writing, repeats included."""

    def read(self) -> None:
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in lines:
            time_ns, event_id = line.decode().split()
            self.done.append((int(time_ns), event_id))

    def close(self) -> None:
        self._file.close()
