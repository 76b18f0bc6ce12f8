"""manage.py check_money: do orders, payments, holds and stock agree?"""

import sys
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand

from payments.money_check import check_money
from skincare.telemetry import metrics


class Command(BaseCommand):
    help = (
        "Recompute every order, its holds and its stock, and list what does not agree. Changes "
        "nothing. Exit status 1 where something does not agree."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days", type=int, help="only orders of the last DAYS days (default: all)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        days = options["days"]
        found = 0
        for disagreement in check_money(since=None if days is None else timedelta(days=days)):
            found += 1
            self.stdout.write(str(disagreement))
        metrics.record({"MoneyDisagreements": found})
        self.stdout.write(f"{found} disagreements")
        if found:
            sys.exit(1)
