"""When a worker is well."""

import subprocess
import sys
from typing import Any

import pytest

from skincare.sqs.health import unhealthy

NOW = 1000.0


def report(last_tick: float = NOW, **lane: Any) -> dict[str, Any]:
    queue = {
        "last_answered_poll": NOW,
        "unanswered_since": NOW,
        "consecutive_failures": 0,
        "in_flight": 0,
        "free_slots": 5,
        "pending_deletes": 0,
        "deletes_denied": False,
    }
    return {"last_tick": last_tick, "queues": {"orders": {**queue, **lane}}}


@pytest.mark.parametrize(
    "healthy",
    [
        report(),
        report(last_tick=NOW - 30),
        report(unanswered_since=NOW - 90),
        report(unanswered_since=None, last_answered_poll=NOW - 500),
        report(unanswered_since=None, last_answered_poll=None),
    ],
    ids=["idle", "slow tick", "slow poll", "busy for long", "busy from the start"],
)
def test_a_worker_that_works_is_healthy(healthy: dict[str, Any]) -> None:
    assert unhealthy(healthy, now=NOW) is None


@pytest.mark.parametrize(
    ("ill", "says"),
    [
        (report(last_tick=NOW - 31), "has not ticked for 31 s"),
        (report(last_tick=NOW + 5), "has not ticked"),
        (report(unanswered_since=NOW - 91), "no answered poll for 91 s"),
        (report(deletes_denied=True), "denies deletes"),
    ],
    ids=["loop hangs", "before a reboot", "deaf", "denied"],
)
def test_a_worker_that_does_not_work_is_not(ill: dict[str, Any], says: str) -> None:
    assert says in (unhealthy(ill, now=NOW) or "")


def test_the_command_imports_nothing_heavy() -> None:
    """It runs every few seconds, for each container."""
    code = (
        "import sys, skincare.sqs.health\n"
        "heavy = {'celery', 'kombu', 'boto3', 'botocore', 'django', 'pycurl', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stdout.strip() == "[]"
