"""manage.py services_role: a login for API and worker that can change rows, and no table."""

import os
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from django.db import connection, transaction
from psycopg import sql

from skincare.operations.base_command import USAGE, OperatorCommand

ROLE: Final = "skincare_services"
SHORTEST_PASSWORD: Final = 16

#: What later migrations make is granted too, as long as the same owner runs them.
_GRANTS: Final = (
    "GRANT USAGE ON SCHEMA public TO {}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA public"
    " GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {}",
)


class Command(OperatorCommand):
    help = (
        "Make the role with which the API and the worker log in to the database, or give it "
        "another password. It reads and writes rows; it cannot change a table, nor switch off the "
        "triggers that keep the ledger and the payments as they were written. Run it as the owner "
        "of the tables, with the role's password in SERVICES_PASSWORD."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--role", default=ROLE, help="its name (%(default)s)")

    def handle(self, *args: Any, **options: Any) -> None:
        password = os.environ.get("SERVICES_PASSWORD", "")
        if len(password) < SHORTEST_PASSWORD:
            raise CommandError(
                f"Set SERVICES_PASSWORD to the role's password: {SHORTEST_PASSWORD} characters or "
                "more.",
                returncode=USAGE,
            )
        role = sql.Identifier(options["role"])
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [options["role"]])
            login = "ALTER ROLE {} LOGIN PASSWORD {}"
            if cursor.fetchone() is None:
                login = "CREATE ROLE {} LOGIN PASSWORD {}"
            cursor.execute(sql.SQL(login).format(role, sql.Literal(password)).as_string())
            for grant in _GRANTS:
                cursor.execute(sql.SQL(grant).format(role).as_string())
        self.write(f"{options['role']} can log in, and read and write rows.")
