"""No row pays for an index that nothing needs."""

from typing import NamedTuple

import pytest
from django.apps import apps
from django.db import connection

APPS = {"events", "operations", "orders", "payments"}


class Index(NamedTuple):
    name: str
    table: str
    columns: list[str]
    unique: bool
    definition: str

    def begins(self, other: "Index") -> bool:
        """Whether the other finds whatever this one finds."""
        return (
            self.name != other.name
            and self.table == other.table
            and self.columns == other.columns[: len(self.columns)]
        )


@pytest.fixture
def indexes(db: None) -> list[Index]:
    """Those of our tables that hold all rows."""
    tables = [model._meta.db_table for model in apps.get_models() if model._meta.app_label in APPS]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT indexrelid::regclass::text, indrelid::regclass::text,
                   ARRAY(SELECT pg_get_indexdef(indexrelid, n, true)
                         FROM generate_series(1, indnkeyatts) AS n),
                   indisunique, pg_get_indexdef(indexrelid)
            FROM pg_index
            WHERE indpred IS NULL AND indrelid::regclass::text = ANY(%s)
            """,
            [tables],
        )
        return [Index(*row) for row in cursor.fetchall()]


def test_none_repeats_the_beginning_of_another(indexes: list[Index]) -> None:
    repeated = [
        f"{one.name}: {other.name}"
        for one in indexes
        for other in indexes
        if not one.unique and one.begins(other)
    ]

    assert repeated == []


def test_none_is_for_searches_by_the_beginning_of_a_text(indexes: list[Index]) -> None:
    assert [index.name for index in indexes if "pattern_ops" in index.definition] == []
