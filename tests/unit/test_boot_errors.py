"""What a person, and what a script, sees of settings that are wrong; and of `| head`."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MANAGE = [sys.executable, "manage.py"]
PROGRAMS = {
    "an operator's command": [*MANAGE, "status", "--json"],
    "a command of Django's": [*MANAGE, "migrate"],
    "the worker": [sys.executable, "-m", "celery", "-A", "skincare", "worker"],
    "the API": [sys.executable, "-m", "gunicorn", "skincare.wsgi", "--bind=127.0.0.1:0"],
}
WRONG = {"ENV_FILE": "", "APP_ENV": "development", "DATABASE_URL": "sqlite:///shop.sqlite3"}


def environment(**values: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], **values}


def on_a_terminal(command: list[str], **values: str) -> tuple[int, str, str]:
    """Run the command with a terminal as its stderr; returns status, stdout and stderr."""
    ours, theirs = pty.openpty()
    program = subprocess.Popen(
        command, cwd=ROOT, env=environment(**values), stdout=subprocess.PIPE, stderr=theirs
    )
    os.close(theirs)
    stdout, _ = program.communicate(timeout=120)
    seen = b""
    try:
        while read := os.read(ours, 65536):
            seen += read
    except OSError:  # how Linux says that nobody writes any more
        pass
    os.close(ours)
    return program.returncode, stdout.decode(), seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("program", PROGRAMS)
def test_on_a_terminal_wrong_settings_are_two_lines_on_stderr(program: str) -> None:
    status, stdout, stderr = on_a_terminal(PROGRAMS[program], **WRONG)

    assert status == 1
    assert stdout == ""
    first, second = stderr.splitlines()
    assert first.startswith("The settings are wrong: DATABASE_URL is not a PostgreSQL URL: ")
    assert second == (
        "Nothing was started. Here APP_ENV is development; each variable is described in "
        ".env.example."
    )


def test_a_script_finds_nothing_but_results_on_stdout() -> None:
    failed = subprocess.run(
        PROGRAMS["an operator's command"],
        cwd=ROOT,
        env=environment(**WRONG),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (failed.returncode, failed.stdout) == (1, "")
    line = json.loads(failed.stderr)
    assert line["event"] == "process_failed"
    assert line["error"].startswith("DATABASE_URL is not a PostgreSQL URL")
    assert "exception" not in line, "the sentence says it all"


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    command = subprocess.Popen(
        [*MANAGE, "help", "--commands"],
        cwd=ROOT,
        env=environment(ENV_FILE="", APP_ENV="test"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert command.stdout
    command.stdout.close()  # as `head` does, only sooner

    _, stderr = command.communicate(timeout=120)

    assert stderr == ""
    assert command.returncode == 128 + 13
