"""manage.py expire_orders: release what unpaid orders hold."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand

from payments.expiry import expire_unpaid_orders


class Command(BaseCommand):
    help = "Expire orders that nobody paid in time and release their reservations."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--older-than-hours",
            type=float,
            help="age from which an unpaid order expires (default: the order's own window)",
        )
        parser.add_argument(
            "--limit", type=int, default=1000, help="at most LIMIT orders (default: %(default)s)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        hours = options["older_than_hours"]
        expired = expire_unpaid_orders(
            older_than=None if hours is None else timedelta(hours=hours), limit=options["limit"]
        )
        self.stdout.write(f"{expired} orders expired")
