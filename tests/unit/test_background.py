"""Tests that a shell runs in the background, whose programs ignore Ctrl-C."""

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
import subprocess, django.db.models, tests.conftest
subprocess.run(["grep", "SigIgn:", "/proc/self/status"], check=True)
"""


def test_what_they_start_can_be_interrupted_all_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True
    )

    ignored = int(done.stdout.split()[1], 16)
    assert not ignored & 1 << (signal.SIGINT - 1)
