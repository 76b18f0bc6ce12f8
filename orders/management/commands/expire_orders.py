"""manage.py expire_orders: release what unpaid orders hold."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from orders.lifecycle import expire_unpaid_orders


class Command(BaseCommand):
    help = "Expire orders that nobody paid in time and release their reservations."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--older-than-hours",
            type=float,
            default=settings.UNPAID_ORDER_EXPIRES_HOURS,
            help="age from which an unpaid order expires (default: %(default)s)",
        )
        parser.add_argument(
            "--limit", type=int, default=1000, help="at most so many orders (default: %(default)s)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        expired = expire_unpaid_orders(
            older_than=timedelta(hours=options["older_than_hours"]), limit=options["limit"]
        )
        self.stdout.write(f"{expired} orders expired")
