"""Shows the fields of the transport's log lines where Celery sets up the logging.

An application that has logging of its own (Celery's signal `setup_logging`) finds them as
attributes of the records, as `extra` puts them there.
"""

import logging
from typing import Any

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class WithFields(logging.Formatter):
    """Another formatter's line, and after one of ours `name=value` for each field."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        line = self._inner.format(record)
        if not record.name.startswith("skincare.sqs"):
            return line
        fields = [
            f"{name}={value!r}"
            for name, value in vars(record).items()
            if name not in _PLAIN and not name.startswith("_")
        ]
        first, newline, rest = line.partition("\n")
        return " ".join([first, *fields]) + newline + rest


def show_fields(logger: logging.Logger, **_: Any) -> None:
    """Connect it to Celery's signal `after_setup_logger`."""
    for handler in logger.handlers:
        if handler.formatter is not None and not isinstance(handler.formatter, WithFields):
            handler.setFormatter(WithFields(handler.formatter))
