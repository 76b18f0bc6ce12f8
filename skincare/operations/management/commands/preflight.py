"""manage.py preflight: one line for each thing that an API or a worker needs."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from skincare.operations.base_command import EXIT_CODES, NOT_DONE, OperatorCommand
from skincare.operations.deployment_checks import check_deployment


class Command(OperatorCommand):
    help = (
        "Check settings, database, migrations, queues and permissions before an API or a worker "
        "starts. Changes nothing. Missing permissions show only where SQS denies a call."
    )
    epilog = EXIT_CODES.replace(
        "nothing matched, or something was left undone: the output says what",
        "something is wrong: the output says what, and the fix",
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("role", choices=["api", "worker"])
        parser.add_argument("--json", action="store_true", help="print one JSON object per line")

    def handle(self, *args: Any, **options: Any) -> None:
        wrong = 0
        for finding in check_deployment(options["role"]):
            wrong += not finding.is_ok
            if options["json"]:
                self.write_json(
                    {
                        "check": finding.name,
                        "ok": finding.is_ok,
                        "problem": finding.problem,
                        "note": finding.note,
                    }
                )
            else:
                self.write(str(finding))
        if wrong:
            raise CommandError(f"{wrong} checks failed.", returncode=NOT_DONE)
