"""Every record becomes one JSON object with the fields that all lines have."""

import json
import logging
import os
import pty
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
import structlog

from skincare.telemetry.identity import IDENTITY
from tests.log_lines import FIELDS, captured

log = structlog.get_logger("orders.somewhere")


def test_our_own_line_has_all_fields_in_front() -> None:
    with captured() as lines, structlog.contextvars.bound_contextvars(request_id="r1"):
        log.info("order_placed", order_id="8e4f", total_rupiah=150000)

    [line] = lines.all()
    assert list(line)[:7] == [
        *("timestamp", "level", "event", "service", "env", "release", "logger")
    ]
    assert datetime.fromisoformat(line.pop("timestamp")).tzinfo is not None
    assert line == {
        "level": "info",
        "event": "order_placed",
        "service": IDENTITY.service,
        "env": "test",
        "release": "development",
        "logger": "orders.somewhere",
        "request_id": "r1",
        "order_id": "8e4f",
        "total_rupiah": 150000,
    }


def test_the_transports_line_has_its_extras_as_fields() -> None:
    with captured() as lines:
        logging.getLogger("skincare.sqs.poller").warning(
            "poll_failed", extra={"queue": "events", "status": 503}
        )

    [line] = lines.all()
    assert (line["event"], line["level"]) == ("poll_failed", "warning")
    assert (line["queue"], line["status"]) == ("events", 503)


def test_a_traceback_has_neither_the_values_of_variables_nor_private_words() -> None:
    with captured() as lines:
        try:
            secret = "".join(["not", "-to-be-", "told"])
            raise ValueError(f"refused by ayu@mail.example, {len(secret)}")
        except ValueError:
            log.exception("event_failed")

    [line] = lines.all()
    assert line["exception"].startswith("Traceback (most recent call last):")
    assert line["exception"].endswith("ValueError: refused by [redacted], 14")
    assert "not-to-be-told" not in lines.text


def test_values_that_json_has_no_word_for() -> None:
    identifier = UUID("8e4f148d-8a00-5061-a156-54eba481e8a4")
    moment = datetime(2026, 11, 11, tzinfo=UTC)
    with captured() as lines:
        log.info(
            "values_given", a=identifier, b=Decimal("1.50"), c=moment, d=object(), e={1}, f=b"x"
        )

    [line] = lines.all()
    assert [line[name] for name in "abcdef"] == [
        *(str(identifier), "1.50", str(moment), "<object>", "<set>", "<bytes>")
    ]


def test_libraries_stay_at_info_where_ours_go_to_debug() -> None:
    program = """
import logging, structlog
from skincare.telemetry.logs import configure_logging
configure_logging(level="DEBUG", console=False, environment="test", release="r")
structlog.get_logger("payments.x").debug("ours_told")
logging.getLogger("skincare.sqs").debug("transport_told")
logging.getLogger("celery.pool").debug("args of a task")
logging.getLogger("botocore.endpoint").debug("body of a call")
logging.getLogger("django.db.backends").debug("SELECT")
"""
    assert [line["event"] for line in run(program)] == ["ours_told", "transport_told"]


def test_metrics_are_told_whatever_the_level() -> None:
    program = """
import django.conf
django.conf.settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql"}})
from skincare.telemetry.logs import configure_logging
from skincare.telemetry import metrics
configure_logging(level="ERROR", console=False, environment="test", release="r")
metrics.count("OrdersCreated")
"""
    assert [line["OrdersCreated"] for line in run(program)] == [[1.0]]


def test_a_warning_is_a_line() -> None:
    program = """
import warnings
from skincare.telemetry.logs import configure_logging
configure_logging(level="INFO", console=False, environment="test", release="r")
warnings.warn("old thing")
"""
    [line] = run(program)
    assert (line["event"], line["level"]) == ("python_message", "warning")
    assert "UserWarning: old thing" in line["message"]


def test_the_error_that_ends_a_service_is_a_line() -> None:
    program = """
from skincare.telemetry.identity import identify
from skincare.telemetry.logs import configure_logging
configure_logging(level="INFO", console=False, environment="test", release="r")
identify("worker")
raise LookupError("DATABASE_URL is empty")
"""
    [line] = run(program, status=1)
    assert (line["event"], line["level"], line["service"]) == (
        "process_failed",
        "critical",
        "worker",
    )
    assert line["error"] == "DATABASE_URL is empty"
    assert line["exception"].endswith("LookupError: DATABASE_URL is empty")


def test_the_error_that_ends_a_thread_is_a_line() -> None:
    program = """
import threading
from skincare.telemetry.logs import configure_logging
configure_logging(level="INFO", console=False, environment="test", release="r")
thread = threading.Thread(target=lambda: 1 / 0, name="outbox-relay")
thread.start(); thread.join()
"""
    [line] = run(program)
    assert (line["event"], line["thread"]) == ("thread_failed", "outbox-relay")


def test_a_line_that_cannot_be_written_is_told_without_its_arguments() -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("ayu@mail.example")

    with captured() as lines:
        log.info("value_given", value={Broken(): 1})

    [line] = lines.all()
    assert line == {
        "level": "error",
        "event": "log_line_failed",
        "logger": "orders.somewhere",
        "error": "TypeError",
    }


def test_lines_of_many_threads_do_not_mix() -> None:
    def write(number: int) -> None:
        for _ in range(50):
            log.info("something_done", number=number, text="x" * 3000)

    with captured() as lines:
        threads = [threading.Thread(target=write, args=[n]) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted(line["number"] for line in lines.all()) == sorted(list(range(8)) * 50)


def run(program: str, *, status: int = 0) -> list[dict[str, Any]]:
    """The lines of a process of its own; nothing else may be written."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (status, "")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(set(line) >= FIELDS for line in lines)
    return lines


@pytest.mark.parametrize("thread_service", ["relay"])
def test_a_thread_can_be_another_service(thread_service: str) -> None:
    with captured() as lines, structlog.contextvars.bound_contextvars(service=thread_service):
        log.info("outbox_relayed")

    assert [line["service"] for line in lines.all()] == [thread_service]


@pytest.mark.parametrize("console", [True, False])
def test_lines_are_readable_only_on_a_terminal_and_only_where_it_is_asked_for(
    console: bool,
) -> None:
    program = f"""
import structlog
from skincare.telemetry.logs import configure_logging
configure_logging(level="INFO", console={console}, environment="test", release="r")
secret = "".join(["not", "-to-be-", "told"])
try:
    1 / 0
except ZeroDivisionError:
    structlog.get_logger("orders.x").exception("order_failed", order_id="8e4f", who="a@b.example")
"""
    terminal, its_end = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", program], stdout=its_end) as process:
        os.close(its_end)
        text = _read_all(terminal)
    assert process.returncode == 0

    assert "not-to-be-told" not in text
    assert "a@b.example" not in text
    assert "ZeroDivisionError" in text
    assert text.startswith("{") is not console


def _read_all(terminal: int) -> str:
    """What is written to a terminal until its last writer ends."""
    chunks = []
    with suppress(OSError), open(terminal, "rb", buffering=0) as reader:  # Linux: EIO at the end
        while chunk := reader.read(4096):
            chunks.append(chunk)
    return b"".join(chunks).decode()
