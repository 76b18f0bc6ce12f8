"""`manage.py services_role`: the services' login changes rows, and nothing that guards them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from psycopg import errors

from orders import catalogue
from skincare.local.postgres import PostgresServer

PASSWORD = "a-password-of-the-services"
ROLE = "services_of_a_test"


@pytest.fixture
def services(
    transactional_db: None, test_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A connection of the role that the command has made."""
    monkeypatch.setenv("SERVICES_PASSWORD", PASSWORD)
    call_command("services_role", role=ROLE, stdout=StringIO())
    name = urlsplit(test_database_url).path.removeprefix("/")
    mine = of_user(test_database_url, ROLE, PASSWORD, database=name)
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


@pytest.fixture
def owners_url() -> Iterator[str]:
    """A database of an owner that ecs/README.md makes, by whom RDS has: nobody is superuser."""
    readme = (Path(settings.BASE_DIR) / "ecs" / "README.md").read_text()
    (command,) = re.findall(r'^psql "\$ADMIN_URL" .*\n.*$', readme, re.MULTILINE)
    statements = re.findall(r'-c "([^"]+)"', command)
    assert len(statements) == 3
    with PostgresServer() as server:
        with psycopg.connect(server.url, autocommit=True) as superuser:
            superuser.execute("CREATE ROLE rds LOGIN CREATEROLE CREATEDB")
        administrators = of_user(server.url, "rds", PASSWORD, database="postgres")
        with psycopg.connect(administrators, autocommit=True) as administrator:
            for statement in statements:
                administrator.execute(statement.replace("skincare", "shop").replace("…", PASSWORD))
        yield of_user(server.url, "shop", PASSWORD, database="shop")


def of_user(url: str, user: str, password: str, *, database: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{user}:{password}@{host}", path=f"/{database}").geturl()


def migrate(url: str, services_password: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "manage.py", "migrate", "--no-input"],
        env=os.environ
        | {"APP_ENV": "test", "DATABASE_URL": url, "SERVICES_PASSWORD": services_password},
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.timeout(180)
def test_each_migration_of_an_owner_who_is_no_superuser_makes_the_services_role(
    owners_url: str,
) -> None:
    for password in (PASSWORD, PASSWORD[::-1]):
        written = migrate(owners_url, password)

        assert "skincare_services can log in" in written
        assert password not in written
        mine = of_user(owners_url, "skincare_services", password, database="shop")
        with psycopg.connect(mine, autocommit=True) as services:
            assert services.execute("SELECT count(*) FROM orders_product").fetchone() == (0,)
            with pytest.raises(errors.InsufficientPrivilege):
                services.execute("ALTER TABLE orders_stockmovement DISABLE TRIGGER ALL")
            with pytest.raises(errors.InsufficientPrivilege):
                services.execute("CREATE TABLE anything (id int)")
