"""The runbook knows every alarm, and its commands exist as it writes them."""

import re
import shlex
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

PROJECT = Path(__file__).parents[3]
RUNBOOK = (PROJECT / "docs" / "runbook.md").read_text()
ALARMS = sorted(
    name
    for template in (PROJECT / "ecs").glob("alarms-*.yaml")
    for name in re.findall(r"AlarmName: !Sub \$\{Prefix\}-(\S+)", template.read_text())
)
COMMANDS = sorted(set(re.findall(r"python manage\.py ([^`\n|]+)", RUNBOOK)))


def test_there_are_alarms_and_commands_to_look_for() -> None:
    assert len(ALARMS) >= 10
    assert len(COMMANDS) >= 15


@pytest.mark.parametrize("alarm", ALARMS)
def test_every_alarm_has_its_row(alarm: str) -> None:
    assert f"\n| `{alarm}` |" in RUNBOOK


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_can_be_typed_as_it_stands(line: str) -> None:
    name, *arguments = shlex.split(line)
    command = load_command_class(get_commands()[name], name)

    command.create_parser("manage.py", name).parse_args(arguments)
