"""The watchdog ends what it runs whenever its parent ends, and says how it ended."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from skincare.local.deadline import wait_until
from skincare.local.supervised import ProgramError, Supervised

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
DEAF_SLEEPER = [
    *(sys.executable, "-c"),
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('deaf', flush=True); time.sleep(600)",
]
PARENT = """
import sys, time
from pathlib import Path
from skincare.local.supervised import Supervised
program = Supervised(sys.argv[2:], name="sleeper", remove=Path(sys.argv[1]))
print(program.pid, program.watchdog_pid, flush=True)
{then}
"""


def is_gone(pid: int) -> bool:
    """Whether nothing of it runs; an orphan stays a zombie where PID 1 does not reap."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def start_parent(
    then: str, folder: Path, command: list[str]
) -> tuple["subprocess.Popen[str]", list[int]]:
    """Start a process that has a supervised command; returns it, and the pids to be gone later."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(then=then), str(folder), *command],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout
    return parent, [int(word) for word in parent.stdout.readline().split()]


@pytest.mark.parametrize(
    "then",
    [
        pytest.param("time.sleep(600)", id="the parent only"),
        pytest.param(
            "import os; os.fork() or time.sleep(3); time.sleep(600)", id="a fork survives"
        ),
    ],
)
def test_sigkill_of_the_parent_ends_the_program_and_removes_its_folder(
    tmp_path: Path, then: str
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    parent, pids = start_parent(then, folder, SLEEPER)
    forks = psutil.Process(parent.pid)
    if "fork" in then:
        wait_until(lambda: len(forks.children()) == 2, seconds=5, what="the fork")
    survivors = [child for child in forks.children() if child.pid not in pids]

    parent.kill()
    parent.wait()
    assert parent.stdout
    parent.stdout.close()

    wait_until(lambda: all(is_gone(pid) for pid in pids), seconds=5, what="both processes to end")
    assert not folder.exists()
    for survivor in survivors:
        assert survivor.is_running()
        survivor.kill()


def test_an_exception_in_the_parent_ends_the_program(tmp_path: Path) -> None:
    parent, pids = start_parent("sys.exit('broken')", tmp_path / "data", SLEEPER)
    assert parent.wait() == 1
    parent.communicate()
    wait_until(lambda: all(is_gone(pid) for pid in pids), seconds=5, what="both processes to end")


def test_signals_to_the_parents_process_group_do_not_reach_the_program() -> None:
    with Supervised(SLEEPER, name="sleeper") as program:
        groups = {os.getpgid(0), os.getpgid(program.watchdog_pid), os.getpgid(program.pid)}
    assert len(groups) == 3


def test_stop_returns_the_exit_status() -> None:
    ended = Supervised([sys.executable, "-c", "raise SystemExit(7)"], name="ended")
    wait_until(lambda: not ended.running, seconds=5, what="the program to end")
    assert ended.stop() == 7
    assert Supervised(SLEEPER, name="sleeper").stop() == 128 + signal.SIGTERM


def test_a_program_that_ignores_its_signal_is_killed_after_the_grace_period() -> None:
    program = Supervised(DEAF_SLEEPER, name="deaf", grace=0.1)
    program.wait_ready(lambda: "deaf" in program.log_tail())
    assert program.stop() == 128 + signal.SIGKILL
    assert is_gone(program.pid)


def test_children_of_the_program_end_with_it() -> None:
    program = Supervised(["bash", "-c", "sleep 600 & echo $!; wait"], name="bash", grace=1)
    program.wait_ready(lambda: program.log_tail().strip().isdigit())
    grandchild = int(program.log_tail())
    os.kill(program.pid, signal.SIGKILL)
    wait_until(lambda: is_gone(grandchild), seconds=5, what="the program's child to end")
    assert program.stop() == 128 + signal.SIGKILL


def test_restart_starts_the_same_command_under_another_pid() -> None:
    with Supervised(SLEEPER, name="sleeper") as program:
        before = program.pid
        program.restart(signal.SIGKILL)
        assert is_gone(before)
        wait_until(
            lambda: psutil.Process(program.pid).cmdline() == SLEEPER,
            seconds=5,
            what="the same command",
        )


def test_a_program_that_ends_before_it_is_ready_is_reported_with_its_log() -> None:
    command = ["bash", "-c", "echo no such table; exit 3"]
    with (
        Supervised(command, name="the server") as program,
        pytest.raises(ProgramError, match="the server ended with status 3\nno such table"),
    ):
        program.wait_ready(lambda: False)


def test_a_program_that_is_not_ready_in_time_is_reported() -> None:
    with (
        Supervised(SLEEPER, name="the server") as program,
        pytest.raises(
            ProgramError, match=r"gave up after 0\.1 s of waiting for the server to be ready"
        ),
    ):
        program.wait_ready(lambda: False, seconds=0.1)


def test_a_program_that_does_not_exist_is_reported() -> None:
    with pytest.raises(ProgramError, match="No such file or directory: '/no/program'"):
        Supervised(["/no/program"], name="nothing")


def test_output_is_appended_to_the_log_file(tmp_path: Path) -> None:
    log = tmp_path / "program.log"
    for _ in range(2):
        program = Supervised(["echo", "hello"], name="echo", log=log)
        wait_until(lambda: not program.running, seconds=5, what="echo to end")  # noqa: B023
        program.stop()
    assert log.read_text() == "hello\nhello\n"
