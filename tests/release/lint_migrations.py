"""`python -m tests.release.lint_migrations`: can the release before live with each new migration?

django-migration-linter reads the SQL of each: a column that goes, is renamed or becomes NOT NULL
without a default of the database breaks the code that still runs. (squawk knows PostgreSQL's locks
better and Django not at all; what it finds is a wait, what this finds is an error for a buyer.)
Migrations that the release before has are left alone: they have run.
"""

import json
import logging
import os
import sys
from pathlib import Path

from skincare.local.postgres import database
from tests.release.previous import COMMIT

SAMPLES = Path(__file__).parent / "samples"
#: What the linter complains of although the release before lives with it, and why it does.
REVIEWED = {
    (
        "orders",
        "0005_waiting_and_goods",
    ): "its unique constraints are on a table that it makes, and "
    "narrower than the one that they replace",
    (
        "orders",
        "0010_large_lists",
    ): "its unique constraint says what the one that it replaces says, with its columns turned",
    (
        "payments",
        "0006_attempts_and_holds",
    ): "its two unique constraints are together narrower than the one that they replace",
    (
        "payments",
        "0012_refunds_by_hand",
    ): "its unique constraint is on a table that the release before does not have",
}


def main() -> int:
    """Print a line for each new migration; return 1 if one is not for two releases, else 0."""
    logging.disable(logging.INFO)
    with database() as url:
        os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        import django

        django.setup()
        from django_migration_linter import MigrationLinter

        linter = MigrationLinter(str(Path.cwd()), no_cache=True)
        known = {tuple(name) for name in recorded_migrations()}
        ours = {"orders", "payments", "events", "operations"}
        for (app, name), migration in sorted(linter.migration_loader.disk_migrations.items()):
            if app in ours and (app, name) not in known:
                before = linter.nb_erroneous
                linter.lint_migration(migration)
                if (app, name) in REVIEWED and linter.nb_erroneous > before:
                    linter.nb_erroneous = before
                    print(f"\treviewed: {REVIEWED[app, name]}")
        return int(linter.has_errors)


def recorded_migrations() -> list[list[str]]:
    """Return (app, name) of each migration of the release before."""
    text = (SAMPLES / f"{COMMIT[:7]}.json").read_text()
    found: list[list[str]] = json.loads(text)["migrations"]
    return found


if __name__ == "__main__":
    sys.exit(main())
