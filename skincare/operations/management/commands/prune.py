"""manage.py prune: delete what is older than the settings say."""

from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

import orders.retention
import payments.retention
import skincare.events.retention
import skincare.operations.retention
from skincare.events.retention import Rule, delete_expired
from skincare.operations.base_command import USAGE, OperatorCommand
from skincare.operations.progress import ProgressBar

#: Outbox rows before the processed events that they belong to.
RULES: Final[tuple[Rule, ...]] = (
    *skincare.events.retention.RULES,
    *payments.retention.RULES,
    *orders.retention.RULES,
    *skincare.operations.retention.RULES,
)


class Command(OperatorCommand):
    help = (
        "Delete sent outbox rows, finished events, decided notifications, checkout requests, wrong "
        "passwords and ended sessions that are older than PRUNE_*_DAYS in the settings. It can run "
        "beside the workers, once a day: its transactions are small, and rows that somebody has "
        "locked wait for the next time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only say what would go")
        parser.add_argument(
            "--batch", type=int, default=1000, help="rows in one transaction (%(default)s)"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["batch"] < 1:
            raise CommandError("--batch must be 1 or more.", returncode=USAGE)
        counts = {
            rule.name: rule.expired().count() if options["dry_run"] else self._delete(rule, options)
            for rule in RULES
        }
        if options["json"]:
            self.write_json({"dry_run": options["dry_run"], "deleted": counts})
            return
        verb = "would be deleted" if options["dry_run"] else "deleted"
        for rule in RULES:
            self.write(f"{counts[rule.name]:8} {rule.name} older than {rule.days} days {verb}")

    def _delete(self, rule: Rule, options: dict[str, Any]) -> int:
        total = rule.expired().count()
        deleted = 0
        with ProgressBar() as bar:
            for number in delete_expired(rule, batch=options["batch"]):
                deleted += number
                bar(deleted, max(total, deleted))
        return deleted
