"""Rows that are written once: refused in the model, and by a trigger in the database."""

from typing import Any, NoReturn

from django.db import models


class AppendOnlyError(Exception):
    """A row of an append-only table cannot be changed or deleted; write a new one."""


class AppendOnlyModel(models.Model):
    """A row that is inserted and then never changed or deleted.

    The table needs the trigger of the migration `0002_append_only` too: it also stops bulk updates
    and other programs.
    """

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnlyError(self._meta.db_table)
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise AppendOnlyError(self._meta.db_table)
