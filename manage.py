#!/usr/bin/env python
"""Django's command line for this project."""

import os
import signal
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "skincare.settings")
    try:
        execute_from_command_line(sys.argv)
    except BrokenPipeError:
        if not _stdout_is_closed():
            raise
    if _stdout_is_closed():
        # Python itself would say so once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)


def _stdout_is_closed() -> bool:
    """Whether whoever read our output has had enough, as `| head` has."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return True
    return False


if __name__ == "__main__":
    main()
