"""`.ci/run` with a `make` that makes nothing, and does what a test wants of a suite."""

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from skincare.local.deadline import wait_until

ROOT = Path(__file__).parents[2]
SUITES = ["lint", "ecs", "test", "slow", "browser", "native", "image-python", "chaos"]
START = """#!/bin/bash
[[ $1 != setup ]] || exit 0
echo "first of $1"
"""
END = """
echo "==== 1 passed in 1.00s ===="
"""

Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts .ci/run, whose suites all run this in bash; `$1` is the suite."""

    def start(script: str) -> subprocess.Popen[str]:
        programs = {"make": START + script + END, "chromium": "", "chromedriver": ""}
        for name, text in programs.items():
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        return subprocess.Popen(
            [ROOT / ".ci" / "run"],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "FOLDER": str(tmp_path)},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return start


def verdicts(output: str) -> dict[str, str]:
    return dict(re.findall(r"^(\S+) +(passed|FAILED) in \d+:\d\d  ==== 1 passed", output, re.M))


def test_each_suite_has_a_line_at_the_end(start: Start) -> None:
    with start("") as run:
        output = run.communicate()[0]

    assert run.returncode == 0
    assert verdicts(output) == dict.fromkeys(SUITES, "passed")
    assert len(verdicts("\n".join(output.splitlines()[-len(SUITES) :]))) == len(SUITES)


@pytest.mark.parametrize("failing", ["ecs", "lint", "chaos"])
def test_a_suite_that_fails_fails_the_run_after_the_others(start: Start, failing: str) -> None:
    with start(f"[[ $1 != {failing} ]] || trap 'exit 2' EXIT") as run:
        output = run.communicate()[0]

    assert run.returncode == 1
    assert verdicts(output) == {**dict.fromkeys(SUITES, "passed"), failing: "FAILED"}


@pytest.mark.parametrize("pair", [("ecs", "lint"), ("browser", "image-python")])
def test_suites_that_run_at_the_same_time_do_not_write_into_each_other(
    start: Start, pair: tuple[str, str]
) -> None:
    one, other = pair
    script = f"""
    touch "$FOLDER/$1"
    if [[ $1 == {one} || $1 == {other} ]]; then
        until [[ -e $FOLDER/{one} && -e $FOLDER/{other} ]]; do sleep 0.05; done
    fi
    echo "last of $1"
    """
    with start(script) as run:
        output = run.communicate()[0]

    for suite in SUITES:
        assert f"== {suite}\nfirst of {suite}\nlast of {suite}\n" in output


def test_a_suite_and_what_it_starts_can_be_interrupted(start: Start) -> None:
    with start("grep SigIgn: /proc/self/status") as run:
        output = run.communicate()[0]

    ignored = [int(mask, 16) for mask in re.findall(r"SigIgn:\s(\w+)", output)]
    assert len(ignored) == len(SUITES)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        assert [mask for mask in ignored if mask & 1 << (number - 1)] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_ends_the_run_ends_its_suites(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    with start(
        'echo $$ > "$FOLDER/$1.pid" && mv "$FOLDER/$1.pid" "$FOLDER/$1" && sleep 600'
    ) as run:
        begun = [tmp_path / "ecs", tmp_path / "lint"]
        wait_until(lambda: all(path.exists() for path in begun), seconds=10, what="two suites")
        pids = [int(path.read_text()) for path in begun]

        # A terminal's Ctrl-C reaches all of its foreground, a supervisor's signal one process.
        os.killpg(run.pid, number) if number == signal.SIGINT else run.send_signal(number)

        run.communicate()
    assert run.returncode != 0
    wait_until(lambda: not any(map(is_running, pids)), seconds=5, what="the end of both")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
