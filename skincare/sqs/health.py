"""Whether the worker on this host is well: `python -m skincare.sqs.health [file]`.

Exits 0, or 1 with the reason. The worker's event loop writes the file (see `heartbeat`); a file
that is old means that the loop hangs. This module imports nothing but the standard library, so
that a container's health check costs a few milliseconds.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Seconds without a tick of the loop. It ticks every `heartbeat.INTERVAL`.
MAX_TICK_AGE = 30.0
#: Seconds without an answered poll while a slot was free: more than three long polls.
MAX_POLL_AGE = 90.0


def default_health_file() -> str:
    """Return the path of the health file where nobody chose another."""
    return os.environ.get("SQS_HEALTH_FILE") or str(
        Path(tempfile.gettempdir()) / "skincare-worker-health.json"
    )


def unhealthy(report: Mapping[str, Any], *, now: float) -> str | None:
    """Return why the worker is not well, None if it is.

    `now` is `time.monotonic()`, which on Linux counts the same for all processes of a host.
    """
    age = now - report["last_tick"]
    if not 0 <= age <= MAX_TICK_AGE:
        return f"the event loop has not ticked for {age:.0f} s"
    for queue, state in report["queues"].items():
        since = state["unanswered_since"]
        if since is not None and now - since > MAX_POLL_AGE:
            return (
                f"queue {queue} has had no answered poll for {now - since:.0f} s with a free slot "
                f"({state['consecutive_failures']} failures in a row)"
            )
        if state["deletes_denied"]:
            return f"queue {queue} denies deletes: the role lacks sqs:DeleteMessage"
    return None


def waiting(report: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each queue whose tasks lack something; the worker is well with that."""
    return [
        f"queue {queue} is waiting for {state['waiting_for']} since {state['waiting_since']}"
        for queue, state in report["queues"].items()
        if state.get("waiting_for")
    ]


def main(arguments: list[str]) -> int:
    """Print the reason if the worker is not well, or what it waits for; return the exit code."""
    path = Path(arguments[0] if arguments else default_health_file())
    try:
        report = json.loads(path.read_text())
        reason = unhealthy(report, now=time.monotonic())
        if not reason:
            print("".join(f"{sentence}\n" for sentence in waiting(report)), end="")
    except OSError as error:
        reason = f"no health file {path}: {error.strerror}"
    except (ValueError, KeyError, TypeError, AttributeError):
        reason = f"{path} is not a health file"
    if reason:
        print(f"unhealthy: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
