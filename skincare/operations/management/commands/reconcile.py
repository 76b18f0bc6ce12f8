"""manage.py reconcile: ask the gateways for payments that no webhook has reported."""

from datetime import UTC, datetime
from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from payments.models import Payment
from payments.reconciliation import Found, due, reconcile, since
from skincare.operations.base_command import NOT_DONE, USAGE, OperatorCommand, since_argument
from skincare.operations.identifiers import order_id_of
from skincare.operations.progress import ProgressBar

_EVER: Final = datetime(2000, 1, 1, tzinfo=UTC)


class Command(OperatorCommand):
    help = (
        "Ask Midtrans and Xendit for the state of payments, and take what they say as if they had "
        "called. Without an option it asks for what is due, as the relay does by itself. It can be "
        "stopped and run again: what was asked for is done."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--since", type=since_argument, metavar="24h", help="all payments made since then"
        )
        parser.add_argument("--order", metavar="NUMBER", help="the payments of one order")
        parser.add_argument(
            "--dry-run", action="store_true", help="ask, say what would change, change nothing"
        )
        parser.add_argument(
            "--per-minute",
            type=int,
            default=settings.GATEWAY_ASKS_PER_MINUTE,
            help="ask for at most this many payments a minute (%(default)s)",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 1 <= options["per_minute"] <= 6000:
            raise CommandError("--per-minute must be 1 to 6000.", returncode=USAGE)
        payments = self._payments(options)
        total, found = payments.count(), list[Found]()
        with ProgressBar() as bar:

            def report(one: Found) -> None:
                found.append(one)
                bar(len(found), total)

            reconcile(
                payments.iterator(chunk_size=100),
                per_minute=options["per_minute"],
                report=report,
                dry_run=options["dry_run"],
            )
        changes = [one for one in found if one.before != one.after]
        failures = [one for one in found if one.error]
        if options["json"]:
            self.write_json(
                {
                    "asked": len(found),
                    "changed": {str(one.payment.pk): [one.before, one.after] for one in changes},
                    "failed": {str(one.payment.pk): one.error for one in failures},
                }
            )
        else:
            self._print(found, changes, failures, dry_run=options["dry_run"])
        if failures:
            raise CommandError(
                f"{len(failures)} of {len(found)} could not be asked for.", returncode=NOT_DONE
            )

    def _payments(self, options: dict[str, Any]) -> Any:
        if options["order"] is not None:
            order_id = order_id_of(options["order"])
            if order_id is None:
                raise CommandError(f"There is no order {options['order']}.", returncode=NOT_DONE)
            return since(_EVER).filter(order_id=order_id)
        if options["since"] is not None:
            return since(options["since"])
        return due(timezone.now())

    def _print(
        self, found: list[Found], changes: list[Found], failures: list[Found], *, dry_run: bool
    ) -> None:
        for one in changes:
            verb = "would become" if dry_run else "became"
            self.write(f"{_name(one.payment)}: {one.before} {verb} {one.after}")
        for one in failures:
            self.write(f"{_name(one.payment)}: {one.error}")
        self.write(f"{len(found)} asked for, {len(changes)} changed, {len(failures)} failed")


def _name(payment: Payment) -> str:
    return f"{payment.provider} {payment.reference or payment.transaction_id}"
