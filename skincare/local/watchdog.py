"""Run one command, and end it when the process that asked for it ends, however that one ends.

    python watchdog.py --parent PID [--signal NAME] [--grace SECONDS] [--uid N --gid N]
                       [--remove FOLDER] -- COMMAND …

A process that is killed with SIGKILL cannot stop its servers. This one can: it lives in a session
of its own, holds the reading end of a pipe whose other end only the parent has, and takes the end
of that pipe as the order to stop the command, kill what is left of its process group, and remove
its folder.

Standard input: `restart SIGNAL` stops the command with that signal and starts it again.
Standard output: `pid N` at each start. Standard error: both streams of the command.
Exit status: the command's, or 128 + the number of the signal that ended it.

Only the standard library, nothing of this project: it starts in some milliseconds.
"""

import argparse
import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys

PARENT_CHECK_SECONDS = 1.0
"""A fork of the parent may hold the pipe open after its death: so its pid is watched too."""


class Watchdog:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.child = self.start()

    def start(self) -> "subprocess.Popen[bytes]":
        switch_user = {}
        if self.options.uid is not None:
            switch_user = {"user": self.options.uid, "group": self.options.gid, "extra_groups": []}
        child = subprocess.Popen(  # noqa: S603 the command is our parent's own
            self.options.command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            stderr=sys.stderr.fileno(),
            start_new_session=True,
            **switch_user,
        )
        print("pid", child.pid, flush=True)
        return child

    def stop(self, with_signal: int) -> int:
        """Ask the command to end, wait for the grace period, then kill its whole process group."""
        self.child.send_signal(with_signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.child.wait(self.options.grace)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child.pid, signal.SIGKILL)
        status = self.child.wait()
        return status if status >= 0 else 128 - status

    def watch(self, wakeup: int) -> int:
        """Serve until the parent goes away or the command ends; returns the exit status."""
        while self.child.poll() is None and os.getppid() == self.options.parent:
            ready, _, _ = select.select([0, wakeup], [], [], PARENT_CHECK_SECONDS)
            if wakeup in ready and is_told_to_stop(os.read(wakeup, 64)):
                break
            if 0 in ready:
                order = os.read(0, 64).split()
                if not order:
                    break
                self.stop(signal.Signals[order[1].decode()])
                self.child = self.start()
        return self.stop(self.options.signal)


def is_told_to_stop(signals: bytes) -> bool:
    return any(number != signal.SIGCHLD for number in signals)


def listen_to_signals() -> int:
    """Return a descriptor on which each SIGCHLD, SIGTERM, SIGINT and SIGHUP arrives as one byte."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return reader


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--signal", type=lambda name: signal.Signals[name], default=signal.SIGTERM)
    parser.add_argument("--grace", type=float, default=10.0)
    parser.add_argument("--uid", type=int)
    parser.add_argument("--gid", type=int)
    parser.add_argument("--remove")
    parser.add_argument("command", nargs="+")
    return parser.parse_args(arguments)


def main() -> int:
    options = parse(sys.argv[1:])
    wakeup = listen_to_signals()
    try:
        return Watchdog(options).watch(wakeup)
    finally:
        if options.remove:
            shutil.rmtree(options.remove, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
