"""Rows read and written without the ORM's compiler.

For those that each checkout, webhook and event reads or writes: there the ORM takes several times
as long to build the statement, which is the same every time, as PostgreSQL to execute it.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

from django.db import connection, models

from skincare.events.statements import prepared_cursor

Row = TypeVar("Row", bound=models.Model)


class _Table(NamedTuple):
    """What is the same in all statements on a model's table."""

    columns: str
    #: Without a key that the database counts up.
    written: Sequence[Any]
    into: str
    places: str


def read(
    model: type[Row], where: str, values: Sequence[Any], *, only: Sequence[str] = ()
) -> list[Row]:
    """Return the rows that meet an SQL condition, and what follows it.

    `only`: the fields to read, in the model's order; others are read when they are asked for.
    """
    names = only or [field.attname for field in model._meta.concrete_fields]
    columns = ", ".join(names) if only else _table(model).columns
    with prepared_cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {model._meta.db_table} WHERE {where}", values)  # noqa: S608
        found = cursor.fetchall()
    return [model.from_db(connection.alias, names, row) for row in found]


def insert(*rows: models.Model) -> None:
    """Insert new rows of one model in one statement. Raises `django.db.IntegrityError`."""
    table = _table(type(rows[0]))
    places = ", ".join([table.places] * len(rows))
    written = _insert(f"INSERT INTO {table.into} VALUES {places}", rows)  # noqa: S608
    for row, (pk,) in zip(rows, written, strict=True):
        _is_stored(row, pk)


def insert_once(row: models.Model, *, unique: str) -> bool:
    """Insert a new row, unless there is one that is equal in the columns `unique`; return whether.

    One statement for what `get_or_create` does with four. It waits for a transaction that is
    inserting the same one.
    """
    table = _table(type(row))
    statement = (
        f"INSERT INTO {table.into} VALUES {table.places}"  # noqa: S608
        f" ON CONFLICT ({unique}) DO NOTHING"
    )
    for (pk,) in _insert(statement, [row]):
        _is_stored(row, pk)
        return True
    return False


@cache
def _table(model: type[models.Model]) -> _Table:
    fields: Sequence[Any] = model._meta.concrete_fields
    written = [field for field in fields if not isinstance(field, models.AutoField)]
    return _Table(
        columns=", ".join(field.column for field in fields),
        written=written,
        into=f"{model._meta.db_table} ({', '.join(field.column for field in written)})",
        places=f"({', '.join(['%s'] * len(written))})",
    )


def _insert(statement: str, rows: Sequence[models.Model]) -> list[tuple[Any]]:
    """Execute it; return the primary keys of the rows that it has written."""
    values = [
        field.get_db_prep_save(field.pre_save(row, True), connection)
        for row in rows
        for field in _table(type(row)).written
    ]
    with prepared_cursor() as cursor:
        cursor.execute(f"{statement} RETURNING {rows[0]._meta.pk.column}", values)
        found: list[tuple[Any]] = cursor.fetchall()
    return found


def _is_stored(row: models.Model, pk: Any) -> None:
    row.pk = pk
    row._state.adding = False
    row._state.db = connection.alias
