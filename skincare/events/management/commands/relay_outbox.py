"""`manage.py relay_outbox`: the relay as a process of its own."""

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from skincare.events.relay import Relay
from skincare.telemetry.identity import identify


class Command(BaseCommand):
    help = "Send unsent outbox rows to SQS, and sweep unpaid orders, until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--once", action="store_true", help="send what is due now, then exit; 1 if SQS failed"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        identify("relay")
        relay = Relay()
        if options["once"]:
            if not relay.run_pass():
                raise CommandError("Not everything could be sent: see the log lines above.")
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            # In a thread: the signal may come while this one holds the locks that `stop` takes.
            signal.signal(number, lambda *_: threading.Thread(target=relay.stop).start())
        relay.wake()
        relay.run()
