"""`manage.py services_role`: the services' login changes rows, and nothing that guards them."""

from collections.abc import Iterator
from io import StringIO
from urllib.parse import urlsplit

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from psycopg import errors

from orders import catalogue

PASSWORD = "a-password-of-the-services"
ROLE = "services_of_a_test"


@pytest.fixture
def services(
    transactional_db: None, test_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A connection of the role that the command has made."""
    monkeypatch.setenv("SERVICES_PASSWORD", PASSWORD)
    call_command("services_role", role=ROLE, stdout=StringIO())
    url = urlsplit(test_database_url)
    host = url.netloc.rpartition("@")[2]
    mine = url._replace(netloc=f"{ROLE}:{PASSWORD}@{host}").geturl()
    try:
        with psycopg.connect(mine, autocommit=True) as connected:
            yield connected
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP OWNED BY {ROLE}")
            cursor.execute(f"DROP ROLE {ROLE}")


def test_the_services_read_and_write_rows(
    services: "psycopg.Connection[tuple[object, ...]]",
) -> None:
    catalogue.seed()

    renamed = services.execute("UPDATE orders_product SET name = 'Serum'")

    assert renamed.rowcount > 0
    assert services.execute("SELECT DISTINCT name FROM orders_product").fetchall() == [("Serum",)]


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE orders_stockmovement DISABLE TRIGGER ALL",
        "TRUNCATE orders_stockmovement",
        "DROP TABLE orders_stockmovement",
        "ALTER TABLE orders_product ADD COLUMN backdoor text",
        "CREATE TABLE anything (id int)",
        "SET session_replication_role = replica",
    ],
)
def test_the_services_cannot_touch_what_guards_the_rows(
    services: "psycopg.Connection[tuple[object, ...]]", statement: str
) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        services.execute(statement)


def test_what_a_later_migration_makes_is_theirs_too(
    services: "psycopg.Connection[tuple[object, ...]]",
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE made_later (id serial PRIMARY KEY)")
    try:
        services.execute("INSERT INTO made_later DEFAULT VALUES")
        assert services.execute("SELECT id FROM made_later").fetchall() == [(1,)]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE made_later")


def test_run_again_it_gives_another_password(
    services: "psycopg.Connection[tuple[object, ...]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    written = StringIO()
    monkeypatch.setenv("SERVICES_PASSWORD", PASSWORD[::-1])

    call_command("services_role", role=ROLE, stdout=written)

    assert "can log in" in written.getvalue()
    assert PASSWORD[::-1] not in written.getvalue()


def test_a_short_password_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICES_PASSWORD", "short")

    with pytest.raises(CommandError, match="16 characters or more"):
        call_command("services_role", role=ROLE)
