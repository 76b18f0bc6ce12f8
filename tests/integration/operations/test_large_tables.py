"""No page of the operator reads more rows where there are more: not one list, search, filter, sort.
Nor does `event list`, or a relay's search for lost events, in one statement.

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
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orders import catalogue
from skincare.events import admin_base, unclaimed
from skincare.events.admin_base import BoundedPaginator, ReadOnlyAdmin
from skincare.events.models import OutboxEvent, ProcessedEvent
from skincare.events.unclaimed import Sweep
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
    read: dict[str, list[str]] = {}

    def look(path: str) -> str:
        with CaptureQueriesContext(connection) as asked:
            answer = operator.get(path)
        assert answer.status_code == 200, path
        paths.append(path)
        if found := too_much(asked):
            read[path] = found
        return answer.content.decode()

    look_at_all(look, filled)

    assert len(paths) > 250
    assert not read, "\n".join(f"{path} read {what}" for path, what in read.items())


def too_much(asked: CaptureQueriesContext) -> list[str]:
    """What each statement has read of a table that grows, where that is more than a page."""
    return [
        f"{rows} rows of {table}: {query['sql']}"
        for query in asked.captured_queries
        if re.match(r"\s*(SELECT|WITH)\b", query["sql"])
        for table, rows in rows_read(query["sql"]).items()
        if rows > MOST_READ
    ]


@pytest.mark.parametrize("filters", [[], ["--type=order.confirmed"], ["--since=9000d"]])
def test_events_are_looked_for_by_their_error_among_those_that_can_have_one(
    filters: list[str], filled: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with_errors = {
        "old": ("skipped", "settled by HAND"),
        "failed": ("failed", "at hand: KeyError"),
        "retried": ("processing", "by hand"),
        "emailing": ("effects_done", "by hand, SMTP 454"),
    }
    confirmed = ProcessedEvent.objects.filter(event_type="order.confirmed").order_by("id")
    wanted = dict(zip(with_errors, confirmed[: 4 * 1000 : 1000], strict=True))
    for name, (status, error) in with_errors.items():
        ProcessedEvent.objects.filter(pk=wanted[name].pk).update(status=status, last_error=error)

    with CaptureQueriesContext(connection) as asked:
        call_command("event", "list", "--error", "HAND", *filters)

    found = re.findall(r"order\.confirmed (\S+)", capsys.readouterr().out)
    assert found == [wanted[name].event_id for name in reversed(with_errors)]
    assert not too_much(asked)


def test_a_relay_finds_what_is_lost_however_old_without_a_statement_that_reads_it_all(
    filled: dict[str, str], letters: Letters, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unclaimed, "_SLICE", 500)
    monkeypatch.setattr(unclaimed, "_SLICES", 5)
    settings.ORDER_EVENTS_QUEUE_URL = letters.pair.url
    sent = OutboxEvent.objects.order_by("sent_at")
    lost = [one.event_id for one in (*sent[:2], *sent[7_000:7_003], sent[EVENTS - 3_000])]
    ProcessedEvent.objects.filter(event_id__in=lost).delete()
    at_one_moment = [one.event_id for one in sent[450:600]]  # also across the end of a statement
    OutboxEvent.objects.filter(event_id__in=at_one_moment).update(sent_at=sent[500].sent_at)
    sweep = Sweep()
    searches = 0

    with CaptureQueriesContext(connection) as asked:
        while sweep.is_behind:
            searches += 1
            sweep.search()
        resent = sweep.run()

    assert sorted(resent) == sorted(lost)
    assert searches >= EVENTS / (500 * 5) - 1
    assert not too_much(asked)


def test_all_lists_of_rows_are_looked_at() -> None:
    of_rows = {
        model._meta.label_lower.replace(".", "/")
        for model, of_model in admin.site._registry.items()
        if isinstance(of_model, ReadOnlyAdmin) and model._meta.app_label != "admin"
    }

    assert of_rows <= set(LISTS)
