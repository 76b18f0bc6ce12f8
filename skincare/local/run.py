"""`make run`: the whole shop, kept up until Ctrl-C."""

import secrets
import shutil
import signal
import sys
from types import FrameType

from skincare.local.sqs import free_port
from skincare.local.stack import PROJECT, Stack
from skincare.local.supervised import ProgramError

FOLDER = PROJECT / "var" / "run"
PORT = 8000
ADMIN = "demo"


def main() -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    print("Starting PostgreSQL, SQS, the API and a worker …", flush=True)
    try:
        with Stack(FOLDER, web_port=free_port(preferred=PORT)) as stack:
            print(f"\n{directions(stack)}\n\nCtrl-C stops it all.", flush=True)
            return watch(stack)
    except ProgramError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.")
        return 0


def interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def watch(stack: Stack) -> int:
    """Wait until Ctrl-C, or until a program ends by itself; returns the exit status then."""
    ended = stack.wait_for_an_end()
    print(f"{ended.name} ended:\n{ended.log_tail()}", file=sys.stderr)
    return 1


def directions(stack: Stack) -> str:
    """What is where."""
    lines = {
        "API, docs page": f"{stack.web_url}/v1/docs",
        "admin": f"{stack.web_url}/admin/  {admin_login(stack)}",
        "database": f"psql '{stack.database_url}'",
        "queue": stack.queue_url,
        "dead-letter queue": stack.dlq_url,
        "Midtrans server key": stack.midtrans_server_key,
        "Xendit token": stack.xendit_callback_token,
        "emails": f"{stack.emails.relative_to(PROJECT)}/",
        "logs": f"{stack.folder.relative_to(PROJECT)}/*.log",
    }
    return "\n".join(f"{name:<20}  {value}" for name, value in lines.items())


def admin_login(stack: Stack) -> str:
    """Make a login with a password of this run; not in a database that outlives it."""
    if not stack.has_own_database:
        return "(with an account of your database)"
    password = secrets.token_urlsafe(9)
    stack.manage(
        *("createsuperuser", "--no-input", "--username", ADMIN, "--email", "demo@shop.example"),
        DJANGO_SUPERUSER_PASSWORD=password,
    )
    return f"as {ADMIN}, password {password}"


if __name__ == "__main__":
    sys.exit(main())
