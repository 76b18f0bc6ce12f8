"""Two migrations of one database never run at once."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from skincare.operations.management.commands.migrate import MIGRATION_LOCK


@contextmanager
def another_migration(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        yield connection


def migrate(url: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-u", "-W", "ignore", "manage.py", "migrate", "--no-input"],
        env={**os.environ, "APP_ENV": "test", "DATABASE_URL": url},
        cwd=settings.BASE_DIR,
        stdout=subprocess.PIPE,
        text=True,
    )


def is_free(url: str) -> bool:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT pg_try_advisory_lock(%s)", [MIGRATION_LOCK])
        return bool(found.fetchall()[0][0])


def test_a_migration_waits_until_the_one_that_runs_has_ended(test_database_url: str) -> None:
    with another_migration(test_database_url):
        second = migrate(test_database_url)
        assert second.stdout is not None
        first_line = second.stdout.readline()
        assert second.poll() is None
        assert "Another migration of this database runs" in first_line

    rest, _ = second.communicate(timeout=120)

    assert second.returncode == 0
    assert "No migrations to apply" in rest


def test_a_migration_that_is_killed_keeps_nobody_waiting(test_database_url: str) -> None:
    with another_migration(test_database_url) as killed:
        with psycopg.connect(test_database_url, autocommit=True) as postgres:
            postgres.execute("SELECT pg_terminate_backend(%s)", [killed.info.backend_pid])
        second = migrate(test_database_url)
        second.communicate(timeout=120)

    assert second.returncode == 0


@pytest.mark.django_db(transaction=True)
def test_the_lock_is_free_again_after_a_migration_and_after_one_that_failed(
    test_database_url: str,
) -> None:
    call_command("migrate", verbosity=0)
    with pytest.raises(Exception, match="nonsense"):
        call_command("migrate", "nonsense", verbosity=0)

    assert is_free(test_database_url)


@pytest.mark.django_db(transaction=True)
def test_an_index_whose_making_broke_off_is_made_again(test_database_url: str) -> None:
    call_command("migrate", "orders", "0009", verbosity=0)
    try:
        with psycopg.connect(test_database_url, autocommit=True) as killed:
            killed.execute("CREATE TABLE two AS SELECT 1 AS same FROM generate_series(1, 2)")
            for name in ("stock_movement_rare_kind", "checkout_request_once", '"Another"'):
                with pytest.raises(psycopg.errors.UniqueViolation):
                    killed.execute(f"CREATE UNIQUE INDEX CONCURRENTLY {name} ON two (same)")

        call_command("migrate", "--plan", verbosity=0)
        assert len(invalid(test_database_url)) == 3
        call_command("migrate", verbosity=0)

        assert invalid(test_database_url) == []
        with connection.cursor() as cursor:
            cursor.execute("SELECT to_regclass('checkout_request_once') IS NOT NULL")
            assert cursor.fetchone() == (True,)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS two")
        call_command("migrate", verbosity=0)


def invalid(url: str) -> list[str]:
    with psycopg.connect(url) as postgres:
        found = postgres.execute(
            "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid"
        )
        return [row[0] for row in found]
