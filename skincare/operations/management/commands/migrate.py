"""manage.py migrate: Django's own, one at a time, and then the services' role.

Two deployments, or a second try while the first still runs, would otherwise change the same tables
at once. PostgreSQL's advisory lock belongs to the connection, so it ends with a killed process.
What a killed one leaves of an index is dropped first, so that the next try can make it again.
Where SERVICES_PASSWORD is set, API and worker log in with it to a lesser role (services_role).
"""

import os
import time
from contextlib import suppress
from typing import Any, Final

from django.core.management import call_command
from django.core.management.commands.migrate import Command as DjangosMigrate
from django.db import DatabaseError, connections

#: The lock's key: any number, as long as it is always the same.
MIGRATION_LOCK: Final = 5_417_280_934
_POLL_SECONDS: Final = 1.0
#: Indexes of the shop whose CREATE or DROP INDEX CONCURRENTLY has not ended. Nothing reads them,
#: and their names are taken.
_BROKEN_OFF: Final = """
SELECT indexrelid::regclass::text
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE NOT indisvalid AND relkind = 'i' AND relnamespace = current_schema()::regnamespace
"""


class Command(DjangosMigrate):
    def handle(self, *args: Any, **options: Any) -> Any:
        """Migrate as Django does, once no other migration of this database runs."""
        with connections[options["database"]].cursor() as cursor:
            waiting = False
            while not self._locked(cursor):
                if not waiting:
                    self.stdout.write("Another migration of this database runs: waiting")
                    self.stdout.flush()
                waiting = True
                time.sleep(_POLL_SECONDS)
        try:
            if not options["plan"] and not options["check_unapplied"]:
                self._drop_broken_off(options["database"])
            done = super().handle(*args, **options)
            if os.environ.get("SERVICES_PASSWORD"):
                call_command("services_role", stdout=self.stdout)
            return done
        finally:
            with suppress(DatabaseError), connections[options["database"]].cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])

    def _drop_broken_off(self, database: str) -> None:
        with connections[database].cursor() as cursor:
            cursor.execute(_BROKEN_OFF)
            for (name,) in cursor.fetchall():  # quoted by PostgreSQL
                self.stdout.write(
                    f"Dropping what is left of the index {name}: it was not completed"
                )
                cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")

    def _locked(self, cursor: Any) -> bool:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [MIGRATION_LOCK])
        return bool(cursor.fetchone()[0])
