"""What all operator's commands share: exit codes, safe output, who acts, a yes to a plan."""

import getpass
import json
import logging
import os
import shutil
import socket
import sys
from argparse import ArgumentTypeError, RawDescriptionHelpFormatter
from datetime import datetime
from typing import Any, Final

from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    DjangoHelpFormatter,
)
from django.db import DatabaseError
from django.utils import timezone

from skincare.events.exceptions import InvalidDuration
from skincare.events.moments import moment_since
from skincare.sqs.dead_letters import NoDeadLetterQueue, Unreachable
from skincare.telemetry.logs import send_to_stderr

NOT_DONE: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3

EXIT_CODES: Final = """\
exit codes:
  0  done, all of it
  1  nothing matched, or something was left undone: the output says what
  2  wrong arguments, or a question that nobody could answer
  3  SQS or the database did not answer
"""


class _Formatter(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """Django's order of options, and an epilog whose lines stay as they are."""


class OperatorCommand(BaseCommand):
    """A command for people and scripts: results on stdout, everything else on stderr."""

    epilog = EXIT_CODES
    requires_system_checks = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(
            prog_name, subcommand, formatter_class=_Formatter, epilog=self.epilog, **kwargs
        )

    def run_from_argv(self, argv: list[str]) -> None:
        _keep_stdout_for_results()
        super().run_from_argv(argv)

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except (Unreachable, NoDeadLetterQueue) as error:
            raise CommandError(
                f"{type(error).__name__}: {error}", returncode=UNREACHABLE
            ) from error
        except KeyboardInterrupt:
            # Messages that were held are visible again by now.
            text = "Stopped. What was done stays done; the rest was not touched."
            raise CommandError(text, returncode=NOT_DONE) from None
        except DatabaseError as error:
            text = f"The database did not do it: {type(error).__name__}"
            raise CommandError(text, returncode=UNREACHABLE) from error

    def write(self, text: str = "") -> None:
        """Print a line. What others wrote into an event cannot steer the terminal."""
        self.stdout.write(printable(text))

    def write_row(self, text: str) -> None:
        """Print one line of a list; on a terminal no more of it than fits."""
        width = shutil.get_terminal_size().columns if self.is_for_a_person else None
        self.write(fitted(text, width))

    @property
    def is_for_a_person(self) -> bool:
        """Whether the results are read on a terminal, and not by another program."""
        return self.stdout.isatty()

    def write_json(self, document: Any) -> None:
        """Print a document as one line of ASCII JSON."""
        self.stdout.write(json.dumps(document, default=str))

    def confirm(self, question: str, *, yes: bool) -> None:
        """Return when the operator agrees; raise CommandError otherwise."""
        if yes:
            return
        if not sys.stdin.isatty():
            raise CommandError(
                "Nobody can be asked here: add --yes, or --dry-run.", returncode=USAGE
            )
        self.stderr.write(f"{question} Type yes to do it: ", ending="")
        if input().strip().lower() != "yes":
            raise CommandError("Nothing was done.", returncode=NOT_DONE)


def printable(text: str) -> str:
    """Return the text with every character escaped that is not meant to be seen."""
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )


def fitted(text: str, width: int | None) -> str:
    """Return the first line of `text`, cut to `width` characters where there is one."""
    line = printable(text.partition("\n")[0])
    return line if width is None or len(line) <= width else f"{line[: width - 1]}…"


def short_time(moment: datetime) -> str:
    """Return the moment in the shop's time zone for a narrow column: month, day and time."""
    return f"{timezone.localtime(moment):%m-%d %H:%M:%S}"


def local_time(moment: datetime) -> str:
    """Return the moment in the shop's time zone, to the second."""
    return timezone.localtime(moment).isoformat(sep=" ", timespec="seconds")


def since_argument(text: str) -> datetime:
    """Return the moment that the argument means, for argparse."""
    try:
        return moment_since(text)
    except InvalidDuration as error:
        raise ArgumentTypeError(str(error)) from None


def add_actor(parser: CommandParser) -> None:
    """Add --actor: whose name the audit entries have."""
    parser.add_argument(
        "--actor",
        default=f"{_login()}@{socket.gethostname()}",
        help="who does this, for the audit entry: a user's name if you have one (%(default)s)",
    )


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user needs no name
        return str(os.getuid())


def _keep_stdout_for_results() -> None:
    """Send log lines to stderr. On a terminal the command's own answer says what it did."""
    is_terminal = sys.stderr.isatty()
    send_to_stderr(
        level=logging.ERROR if is_terminal else logging.NOTSET,
        readable=is_terminal,
    )
