"""The API reports how many dead letters there are; nobody else looks, and no failure ends it."""

import pytest
from structlog.testing import capture_logs

from skincare.operations.dead_letter_gauge import report_dead_letters
from skincare.telemetry.identity import IDENTITY
from tests.integration.operations.conftest import Letters


@pytest.fixture
def in_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IDENTITY, "service", "api")


def reported() -> list[float]:
    with capture_logs() as lines:
        report_dead_letters()
    return [value for line in lines for value in line.get("DeadLetters", [])]


def test_the_api_reports_none_and_then_all_dead_letters(in_the_api: None, letters: Letters) -> None:
    before = reported()
    letters.put(["one", "two", "three"])

    assert (before, reported()) == ([0.0], [3.0])


def test_a_process_whose_role_may_not_look_asks_nothing(letters: Letters) -> None:
    letters.put(["one"])

    assert reported() == []


def test_an_sqs_that_does_not_answer_ends_nothing(
    in_the_api: None, settings: pytest.FixtureRequest, letters: Letters
) -> None:
    settings.ORDER_EVENTS_QUEUE_URL = f"{letters.pair.url}-not-there"  # type: ignore[attr-defined]

    assert reported() == []
