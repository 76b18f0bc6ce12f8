"""Whether the workers on this host are well: `python -m skincare.sqs.health [file]`.

Exits 0, or 1 with the reason. Each worker's event loop writes a file (see `worker.Heartbeat`); one
that is old means that the loop hangs. Without a name, it is the file that SQS_HEALTH_FILE names, or
those of all workers that run here. This module imports nothing but the standard library, so
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

#: Seconds without a tick of the loop. It ticks every `worker.INTERVAL`.
MAX_TICK_AGE = 30.0
#: Seconds without an answered poll while a slot was free: more than three long polls.
MAX_POLL_AGE = 90.0

_NAME = "skincare-worker-health"


def default_health_file() -> str:
    """Return the path of the health file where nobody chose another."""
    return os.environ.get("SQS_HEALTH_FILE") or str(_folder() / f"{_NAME}.json")


def health_file_of_process(chosen: str) -> Path:
    """Return where this process writes its health.

    Not the default path itself: two workers on a host would hide each other.
    """
    if chosen != str(_folder() / f"{_NAME}.json"):
        return Path(chosen)
    return _folder() / f"{_NAME}.{os.getpid()}.json"


def start_of_process(pid: int) -> str:
    """Return when the process was started, in a form to compare; "" where nothing can be known."""
    try:
        # Field 22, in clock ticks since the host's start; the second may have blanks in it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def reports_of_host() -> dict[Path, str]:
    """Return the health files of the workers that run here; of one that has ended, none."""
    found = {}
    for path in sorted(_folder().glob(f"{_NAME}.*.json")):
        try:
            text = path.read_text()
            report = json.loads(text)
            if report["started"] != start_of_process(report["pid"]):
                continue
        except (ValueError, KeyError, TypeError, OSError):
            continue
        found[path] = text
    return found


def _folder() -> Path:
    return Path(tempfile.gettempdir())


def unhealthy(report: Mapping[str, Any], *, now: float) -> str | None:
    """Return why the worker is not well, None if it is.

    `now` is `time.monotonic()`, which on Linux counts the same for all processes of a host.
    """
    if report.get("stuck"):
        return str(report["stuck"])
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
    """Print the reason if a worker is not well, or what it waits for; return the exit code."""
    chosen = arguments[0] if arguments else os.environ.get("SQS_HEALTH_FILE")
    if chosen:
        return _judge(Path(chosen))
    paths = list(reports_of_host())
    if not paths:
        print(f"unhealthy: no worker runs here (no {_folder() / _NAME}.*.json)", file=sys.stderr)
        return 1
    return max([_judge(path) for path in paths])


def _judge(path: Path) -> int:
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
