"""When a worker is well."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from skincare.sqs import health
from skincare.sqs.health import unhealthy

NOW = 1000.0


def report(last_tick: float = NOW, **differing: Any) -> dict[str, Any]:
    queue = {
        "last_answered_poll": NOW,
        "unanswered_since": NOW,
        "consecutive_failures": 0,
        "in_flight": 0,
        "free_slots": 5,
        "pending_deletes": 0,
        "deletes_denied": False,
    }
    return {"last_tick": last_tick, "queues": {"orders": {**queue, **differing}}}


@pytest.mark.parametrize(
    "healthy",
    [
        report(),
        report(last_tick=NOW - 30),
        report(unanswered_since=NOW - 90),
        report(unanswered_since=None, last_answered_poll=NOW - 500),
        report(unanswered_since=None, last_answered_poll=None),
        report(unanswered_since=None, waiting_for="PostgreSQL", waiting_since="2026-01-01"),
    ],
    ids=["idle", "slow tick", "slow poll", "busy for long", "busy from the start", "waiting"],
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
        (report() | {"stuck": "process 7 hangs and cannot be killed"}, "cannot be killed"),
    ],
    ids=["loop hangs", "before a reboot", "deaf", "denied", "stuck"],
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


class Host:
    """A folder for temporary files with health files in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, pid: int, **changes: Any) -> None:
        document = {
            **report(last_tick=time.monotonic()),
            "pid": pid,
            "started": health.start_of_process(pid),
            **changes,
        }
        document["queues"]["orders"]["unanswered_since"] = None
        (self.folder / f"skincare-worker-health.{pid}.json").write_text(json.dumps(document))


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("SQS_HEALTH_FILE", raising=False)
    return Host(tmp_path)


def test_each_worker_has_a_file_of_its_own_unless_one_was_chosen(host: Host) -> None:
    own = health.health_file_of_process(health.default_health_file())

    assert own == host.folder / f"skincare-worker-health.{os.getpid()}.json"
    assert health.health_file_of_process("/run/mine.json") == Path("/run/mine.json")


def test_two_workers_on_a_host_do_not_hide_each_other(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    host.write(os.getpid())
    host.write(os.getppid())
    assert health.main([]) == 0

    host.write(os.getppid(), stuck="process 7 hangs and cannot be killed")

    assert health.main([]) == 1
    assert capsys.readouterr().err == "unhealthy: process 7 hangs and cannot be killed\n"


def test_the_file_of_a_worker_that_has_ended_says_nothing(host: Host) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        host.write(process.pid, last_tick=0.0)
        host.write(os.getpid())
        assert health.main([]) == 1
        process.kill()

    assert health.main([]) == 0


def test_the_file_of_an_earlier_process_with_the_same_id_says_nothing(host: Host) -> None:
    host.write(os.getpid(), started="12", last_tick=0.0)
    host.write(os.getppid())

    assert health.main([]) == 0


def test_a_host_without_a_worker_is_unhealthy(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    assert health.main([]) == 1
    assert "no worker runs here" in capsys.readouterr().err
