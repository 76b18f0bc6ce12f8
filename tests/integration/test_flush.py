"""The tables are emptied after a test, whoever else reads them."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from skincare.local.deadline import wait_until


@pytest.mark.django_db(transaction=True)
def test_a_reader_that_wants_a_second_table_does_not_stop_the_emptying(
    test_database_url: str,
) -> None:
    tables = connection.introspection.table_names()

    def read_the_others(reader: psycopg.Connection[tuple[int]], pid: int) -> None:
        wait_until(lambda: is_blocked(reader, pid), seconds=30, what="the emptying to wait")
        reader.execute(f"LOCK TABLE {', '.join(tables)} IN ACCESS SHARE MODE")
        reader.commit()

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [pid] = cursor.fetchone()
    with ThreadPoolExecutor(1) as other, psycopg.connect(test_database_url) as reader:
        reader.execute("LOCK TABLE orders_product IN ACCESS SHARE MODE")
        reading = other.submit(read_the_others, reader, pid)

        call_command("flush", interactive=False, verbosity=0)

        reading.result()


def is_blocked(reader: psycopg.Connection[tuple[int]], pid: int) -> bool:
    found = reader.execute("SELECT FROM pg_locks WHERE pid = %s AND NOT granted", [pid])
    return found.fetchone() is not None
