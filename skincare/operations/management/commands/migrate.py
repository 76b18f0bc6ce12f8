"""manage.py migrate: Django's own, one at a time, and then the services' role.

Two deployments, or a second try while the first still runs, would otherwise change the same tables
at once. PostgreSQL's advisory lock belongs to the connection, so it ends with a killed process.
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
            done = super().handle(*args, **options)
            if os.environ.get("SERVICES_PASSWORD"):
                call_command("services_role", stdout=self.stdout)
            return done
        finally:
            with suppress(DatabaseError), connections[options["database"]].cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])

    def _locked(self, cursor: Any) -> bool:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [MIGRATION_LOCK])
        return bool(cursor.fetchone()[0])
