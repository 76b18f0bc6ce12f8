"""`make run`: the whole shop, kept up until Ctrl-C.

    python -m skincare.local.run [--folder FOLDER]

It keeps its database, keys and login in the folder from one start to the next, starts the API and
the worker again when their code changes, and obeys `control` from another terminal.
"""

import argparse
import fcntl
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from skincare.local.code_watch import CodeWatch
from skincare.local.control import PROGRAMS, VERBS, Control, Order
from skincare.local.loopback import go_past_proxies
from skincare.local.shell_environment import write_environment
from skincare.local.sqs import free_port
from skincare.local.stack import PROJECT, RUN_FOLDER, START_SECONDS, Stack
from skincare.local.supervised import ProgramError, Supervised

PORT = 8000
ADMIN = "demo"
LOOK_SECONDS = 0.5  # between two looks at code and programs


class RunsAlready(RuntimeError):
    """Another process keeps the shop of this checkout up; the message says where."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=RUN_FOLDER, help="default: %(default)s")
    folder: Path = parser.parse_args().folder.absolute()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    go_past_proxies()
    try:
        with the_only_run(folder):
            run(folder)
            return 0
    except (RunsAlready, ProgramError, LookupError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.")
        return 0


def run(folder: Path) -> None:
    for log in folder.glob("*.log"):
        log.unlink()
    environment_file = folder / "env"
    port = free_port(preferred=PORT)
    print("Starting PostgreSQL, SQS, a mail server, the API and a worker …", flush=True)
    if port != PORT:
        print(f"Port {PORT} is taken by another program: the API gets {port}.")
    try:
        with Stack(folder, web_port=port, keep=True) as stack, Control(folder) as control:
            write_environment(environment_file, stack.own_environment)
            print(f"\n{directions(stack)}\n\nCtrl-C stops it all.", flush=True)
            Caretaker(stack, control).work()
    finally:
        environment_file.unlink(missing_ok=True)


@contextmanager
def the_only_run(folder: Path) -> Iterator[None]:
    """Raises RunsAlready where another process of this checkout is within."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise RunsAlready(
                f"The shop of this checkout is up already, by process {lock.read().strip()}. "
                f"Stop that one with Ctrl-C, or use it:\n    {loading_line(folder)}"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


@dataclass
class Program:
    """The API or the worker, which may be stopped, or may have ended by itself."""

    name: str
    supervised: Supervised
    start: Callable[[], Supervised]
    is_ready: Callable[[], bool]
    is_wanted: bool = True

    @property
    def has_ended(self) -> bool:
        return self.is_wanted and not self.supervised.running


class Caretaker:
    """Looks after the API and the worker while the shop is up."""

    def __init__(self, stack: Stack, control: Control) -> None:
        self._stack = stack
        self._control = control
        self._code = CodeWatch(PROJECT)
        self._programs = {
            "worker": Program("worker", stack.worker, stack.start_worker, stack.worker_polls),
            "api": Program("API", stack.web, stack.start_web, stack.web_answers),
        }
        self._told: set[int] = set()

    def work(self) -> None:
        """Obey orders, and start again what has new code, until KeyboardInterrupt."""
        while True:
            if order := self._control.next(seconds=LOOK_SECONDS):
                answer = self._obey(order)
                say(answer)
                order.answer(answer)
            if changed := self._code.changed():
                self._reload(changed)
            for program in self._programs.values():
                if program.has_ended and program.supervised.pid not in self._told:
                    self._told.add(program.supervised.pid)
                    say(
                        f"The {program.name} ended by itself:\n{program.supervised.log_tail()}\n"
                        "The rest stays up. It starts again when its code changes, or by "
                        f"`{order_line('start', program)}`."
                    )

    def _obey(self, order: Order) -> str:
        if order.verb not in VERBS or order.program not in PROGRAMS:
            return f"Unknown: {order.verb} {order.program}"
        program = self._programs[order.program]
        if order.verb == "start" and program.supervised.running:
            return f"The {program.name} runs already."
        if order.verb in ("stop", "restart"):
            program.is_wanted = False
            program.supervised.stop()
            if order.verb == "stop":
                return (
                    f"The {program.name} is stopped; "
                    f"`{order_line('start', program)}` starts it again."
                )
        return self._start(program)

    def _reload(self, changed: list[Path]) -> None:
        others = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        say(f"{changed[0]}{others} changed.")
        for program in self._programs.values():
            if program.is_wanted:
                program.supervised.stop()
                say(self._start(program))

    def _start(self, program: Program) -> str:
        program.supervised.stop()
        program.supervised = program.start()
        if program.name == "worker":
            self._stack.worker = program.supervised
        else:
            self._stack.web = program.supervised
        program.is_wanted = True
        try:
            program.supervised.wait_ready(program.is_ready, seconds=START_SECONDS)
        except ProgramError as error:
            self._told.add(program.supervised.pid)
            return f"The {program.name} does not start: {error}"
        return f"The {program.name} is up again."


def say(text: str) -> None:
    print(text, flush=True)


def order_line(verb: str, program: Program) -> str:
    if program.name == "worker":
        return f"make {verb}-worker"
    return f".venv/bin/python -m skincare.local.control {verb} {program.name.lower()}"


def loading_line(folder: Path) -> str:
    return f". {shown(folder / 'env')}"


def shown(path: Path) -> Path:
    """The path as a person in the project's folder writes it."""
    return path.relative_to(PROJECT) if path.is_relative_to(PROJECT) else path


def directions(stack: Stack) -> str:
    """What is where."""
    lines: dict[str, str] = {}
    for server in stack.servers:
        lines |= server.directions()
    lines |= {
        "API, docs page": f"{stack.web_url}/v1/docs",
        "admin": f"{stack.web_url}/admin/  {admin_login(stack)}",
        "emails as files": f"{shown(stack.emails)}/*.eml",
        "logs": f"{shown(stack.folder)}/*.log",
        "Midtrans server key": stack.midtrans_server_key,
        "Xendit token": stack.xendit_callback_token,
        "your shell": f'{loading_line(stack.folder)}  # then celery, psql "$DATABASE_URL" …',
        "the worker alone": "make stop-worker, make start-worker",
        "changed code": "starts the API and the worker again",
    }
    if stack.has_own_database:
        lines["database, keys, login"] = "stay for the next start; `make clean` forgets them"
    return "\n".join(f"{name:<22}  {value}" for name, value in lines.items())


def admin_login(stack: Stack) -> str:
    """Make the login where it is not there yet; not in a database that is not ours."""
    if not stack.has_own_database:
        return "(with an account of your database)"
    password = stack.kept.secret("admin's password", size=9)
    with stack.connect() as connection:
        query = "SELECT 1 FROM auth_user WHERE username = %s"
        known = connection.execute(query, [ADMIN]).fetchone()
    if not known:
        stack.manage(
            *("createsuperuser", "--no-input", "--username", ADMIN, "--email", "demo@shop.example"),
            DJANGO_SUPERUSER_PASSWORD=password,
        )
    return f"as {ADMIN}, password {password}"


if __name__ == "__main__":
    sys.exit(main())
