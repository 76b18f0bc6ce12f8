"""No page of the operator reads more rows where there are more: not one list, search, filter, sort.

What a statement reads is counted, not how long it takes and not how it is planned: a walk along an
index that finds nothing reads as much as a scan of the table.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orders import catalogue
from skincare.events import admin_base
from skincare.events.admin_base import BoundedPaginator, ReadOnlyAdmin
from skincare.operations import stats
from tests.bench.large_rows import TABLES, fill
from tests.bench.operators_pages import LISTS, look_at_all, words_of
from tests.integration.operations.conftest import Letters

pytestmark = pytest.mark.django_db

EVENTS: Final = 12_000
#: A page of a list, a count that ends, or keys that were found: each is less, also where every
#: other row is of another kind.
MOST_READ: Final = 700
GROWING: Final = {name for name, _, _ in TABLES}
#: So that a day has few events; what it costs to sum up a day does not grow with the tables.
SECONDS_APART: Final = 600.0


@pytest.fixture(scope="module")
def filled(django_db_setup: None, django_db_blocker: Any) -> Iterator[dict[str, str]]:
    """Tables with rows; what can be searched for in them."""
    with django_db_blocker.unblock(), transaction.atomic():
        catalogue.seed()
        fill(connection.connection, events=EVENTS, seconds_apart=SECONDS_APART)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
            # As PostgreSQL plans where the tables are a hundred times as large.
            cursor.execute(
                "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off;"
                "SET LOCAL enable_mergejoin = off"
            )
        yield words_of(connection.connection)
        transaction.set_rollback(True)


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedPaginator, "MOST", 300)
    monkeypatch.setattr(admin_base, "MOST_FOUND", 100)
    monkeypatch.setattr(stats, "_MOST_OVERTAKEN", 100)


def rows_read(sql: str) -> Counter[str]:
    """Execute a query; return how many rows of each table that grows it has read."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) " + sql)
        [[plan]] = cursor.fetchall()
    plan = json.loads(plan) if isinstance(plan, str) else plan
    read: Counter[str] = Counter()
    nodes = [plan[0]["Plan"]]
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        if node.get("Relation Name") in GROWING:
            left_out = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
            rows = node["Actual Rows"] + sum(node.get(name, 0) for name in left_out)
            read[node["Relation Name"]] += round(rows * node["Actual Loops"])
    return read


def test_no_page_reads_more_rows_where_there_are_more(
    filled: dict[str, str], small_bounds: None, letters: Letters
) -> None:
    letters.client.send_message(QueueUrl=letters.pair.url, MessageBody="waits")
    operator = Client()
    operator.force_login(get_user_model().objects.create_superuser("ayu"))
    paths: list[str] = []
    read: dict[str, tuple[int, str]] = {}

    def look(path: str) -> str:
        with CaptureQueriesContext(connection) as asked:
            answer = operator.get(path)
        assert answer.status_code == 200, path
        paths.append(path)
        for query in asked.captured_queries:
            if re.match(r"\s*(SELECT|WITH)\b", query["sql"]):
                for table, rows in rows_read(query["sql"]).items():
                    if rows > MOST_READ:
                        read[path] = (rows, f"of {table}: {query['sql']}")
        return answer.content.decode()

    look_at_all(look, filled)

    assert len(paths) > 250
    assert not read, "\n".join(f"{path} read {rows} {what}" for path, (rows, what) in read.items())


def test_all_lists_of_rows_are_looked_at() -> None:
    of_rows = {
        model._meta.label_lower.replace(".", "/")
        for model, of_model in admin.site._registry.items()
        if isinstance(of_model, ReadOnlyAdmin) and model._meta.app_label != "admin"
    }

    assert of_rows <= set(LISTS)
