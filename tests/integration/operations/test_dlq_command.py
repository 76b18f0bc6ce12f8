"""`manage.py dlq` as a person and as a script use it."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from skincare.events.models import OutboxEvent
from tests.integration.events.event_documents import new_event
from tests.integration.operations.conftest import Letters, as_bare, done, failed

pytestmark = pytest.mark.django_db

PROJECT = Path(__file__).parents[3]


def dlq(*args: str) -> tuple[int, str]:
    """Run the command; return its exit code, and what it printed or refused with."""
    out = StringIO()
    try:
        call_command("dlq", *args, stdout=out, stderr=StringIO())
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


def test_list_is_one_line_for_each(letters: Letters) -> None:
    event = failed(new_event(), "TimeoutError: \x1b[2J\nsecond line")
    letters.put([as_bare(event), "poison"])

    code, printed = dlq("list")

    assert code == 0
    lines = sorted(printed.splitlines(), key=len)
    assert lines[0].endswith("  raw  not an event: the message is neither JSON nor base64 of UTF-8")
    assert lines[1].endswith(
        f"  payment.processed {event.event_id}  failed once: TimeoutError: \\x1b[2J"
    )


def test_show_by_message_or_event(letters: Letters) -> None:
    event = done(new_event())
    letters.put([as_bare(event)])

    code, printed = dlq("show", event.event_id)

    assert code == 0
    assert "state      already processed: done" in printed
    assert f"manage.py event show {event.event_id}" in printed
    document = json.loads(dlq("show", event.event_id, "--json")[1])
    assert document["event"] == event.document()
    assert document["body"] == as_bare(event)
    assert dlq("show", document["message_id"])[0] == 0


def test_show_escapes_what_is_in_a_body(letters: Letters) -> None:
    letters.put(["evil \x7f\u202e"])
    [line] = dlq("list", "--json")[1].splitlines()
    _, printed = dlq("show", json.loads(line)["message_id"])
    assert r"'evil \x7f\u202e'" in printed


@pytest.mark.parametrize(
    "args",
    [
        ("list", "--state", "failed"),
        ("show", "no-such-id"),
        ("redrive", "--type", "payment.failed", "--yes"),
        ("discard", "--error", "nothing", "--reason", "x", "--yes"),
    ],
)
def test_nothing_matches(letters: Letters, args: tuple[str, ...]) -> None:
    letters.put([as_bare(new_event())])
    assert dlq(*args)[0] == 1
    assert letters.visible() == 1


@pytest.mark.parametrize(
    "args",
    [
        ("redrive", "--yes"),
        ("redrive", "--all", "--state", "failed", "--yes"),
        ("discard", "--reason", "x", "--yes"),
        ("discard", "--all", "--reason", " ", "--yes"),
        ("redrive", "--native", "--state", "failed", "--yes"),
        ("redrive", "--native", "--force", "--yes"),
        ("redrive", "--all"),  # nobody to ask
    ],
)
def test_wrong_usage_touches_nothing(letters: Letters, args: tuple[str, ...]) -> None:
    letters.put([as_bare(new_event())])
    assert dlq(*args)[0] == 2
    assert letters.visible() == 1
    assert not OutboxEvent.objects.exists()


def test_sqs_that_cannot_move_natively_is_said(letters: Letters) -> None:
    letters.put(["poison"])
    code, refusal = dlq("redrive", "--native", "--yes")
    assert code == 3
    assert refusal.startswith("Unreachable: SQS refused StartMessageMoveTask")
    assert letters.visible() == 1


class Answering(StringIO):
    """A terminal at which somebody types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code", "left"), [("yes\n", 0, 0), ("no\n", 1, 1)])
def test_a_person_is_asked_first(
    letters: Letters, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, left: int
) -> None:
    letters.put([as_bare(new_event())])
    monkeypatch.setattr("sys.stdin", Answering(answer))

    assert dlq("redrive", "--state", "never-seen")[0] == code

    assert letters.visible() == left


def test_what_came_after_the_plan_is_not_touched(
    letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters.put(["poison"])

    class Late(Answering):
        def readline(self, *args: Any) -> str:
            letters.put(["more poison"])
            return "yes\n"

    monkeypatch.setattr("sys.stdin", Late())

    assert dlq("discard", "--all", "--reason", "a test of ours")[0] == 0

    assert letters.visible() == 1


@pytest.mark.django_db(transaction=True)
def test_stdout_is_for_results_alone(
    letters: Letters, test_database_url: str, sqs_server: str
) -> None:
    letters.put([as_bare(new_event())])
    environment = {
        "APP_ENV": "test",
        "ENV_FILE": "",
        "PATH": "/usr/bin:/bin",
        "DATABASE_URL": test_database_url,
        "ORDER_EVENTS_QUEUE_URL": letters.pair.url,
        "SQS_ENDPOINT_URL": sqs_server,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }

    def manage(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *args],
            cwd=PROJECT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    redriven = manage("dlq", "redrive", "--all", "--yes", "--json")
    assert redriven.returncode == 0, redriven.stderr
    assert json.loads(redriven.stdout)["counts"] == {"redriven": 1}
    assert '"event":"event_replayed"' in redriven.stderr
    empty = manage("dlq", "list")
    assert (empty.returncode, empty.stdout) == (1, "")
    assert manage("dlq", "list", "--state", "nonsense").returncode == 2
    usage = manage("dlq", "redrive", "--help")
    assert "--native" in usage.stdout
    assert "exit codes:" in manage("dlq", "--help").stdout


def test_on_a_terminal_a_list_fits_and_its_short_ids_are_enough(
    letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given: three dead letters, one with a long error. When: a person lists them at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    events = [failed(new_event(), "TimeoutError: " + "x" * 300), new_event()]
    letters.put([*map(as_bare, events), "poison"])
    screen = Answering()

    call_command("dlq", "list", stdout=screen, stderr=StringIO())

    lines = screen.getvalue().splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) == 80
    [short] = [line.split()[0] for line in lines if "TimeoutError" in line]
    code, shown = dlq("show", short)
    assert (code, events[0].event_id in shown) == (0, True)
    assert dlq("discard", "--id", short, "--reason", "a test of ours", "--yes")[0] == 0
    assert letters.visible() == 2
