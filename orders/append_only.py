"""Rows that are written once: refused in the model, and by a trigger in the database."""

from typing import Any, NoReturn

from django.db import migrations, models


class AppendOnlyError(Exception):
    """A row of an append-only table cannot be changed or deleted; write a new one."""


class AppendOnlyModel(models.Model):
    """A row that is inserted and then never changed or deleted.

    The table needs `refuse_changes(table)` in its migration too: it also stops bulk updates and
    other programs.
    """

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnlyError(self._meta.db_table)
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnlyError(self._meta.db_table)


def refuse_changes(table: str) -> migrations.RunSQL:
    """Return the migration step that makes PostgreSQL refuse UPDATE and DELETE on `table`."""
    return migrations.RunSQL(
        sql=f"""
        CREATE FUNCTION {table}_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION '{table} is append-only: % refused', TG_OP
                USING ERRCODE = 'integrity_constraint_violation';
        END
        $$;
        CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION {table}_refuse_change();
        """,
        reverse_sql=f"""
        DROP TRIGGER {table}_append_only ON {table};
        DROP FUNCTION {table}_refuse_change();
        """,
    )
