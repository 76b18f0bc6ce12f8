"""Which calls start, wait, or never will."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from skincare.sqs import SQSPolicy
from skincare.sqs.decoder import TaskCall
from skincare.sqs.validation import START, validate

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


def registered(header: Callable[..., object]) -> Any:
    """A task as Celery keeps it: with the signature of its function."""
    return SimpleNamespace(typing=True, __header__=header)


CELERYS_OWN = ["celery.chunks", "celery.map", "celery.backend_cleanup", "celery.accumulate"]
TASKS = {
    "mail": registered(lambda to, *, copy=False: None),
    "any": SimpleNamespace(typing=False, __header__=None),
    **{name: SimpleNamespace(typing=False, __header__=None) for name in CELERYS_OWN},
}


def action(**call: Any) -> tuple[str, str, float]:
    fields = {"task": "mail", "task_id": "1", "args": ["x"], "kwargs": {}, **call}
    verdict = validate(TaskCall(**fields), tasks=TASKS, policy=SQSPolicy(), now=NOW)
    return verdict.action, verdict.reason, verdict.delay


def test_a_call_in_order_starts() -> None:
    assert action() == (START.action, "", 0)
    assert action(kwargs={"copy": True}, expires=NOW + timedelta(seconds=1))[0] == "start"
    assert action(task="any", args=[1, 2, 3])[0] == "start"
    assert action(eta=NOW)[0] == "start"
    assert action(hard_time_limit=90, soft_time_limit=75)[0] == "start"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ({"task": "nobody"}, "the task is unknown"),
        ({"args": []}, "the arguments do not fit the task"),
        ({"args": ["x", "y"]}, "the arguments do not fit the task"),
        ({"kwargs": {"klingon": 1}}, "the arguments do not fit the task"),
        ({"expires": NOW}, "expired"),
        ({"hard_time_limit": 91}, "the time limit is longer than the worker's"),
        ({"soft_time_limit": 91}, "the soft time limit is longer than the worker's"),
        ({"eta": NOW + timedelta(seconds=43_201)}, "eta is more than 43200 s away"),
    ],
)
def test_a_call_that_can_never_run_is_quarantined(call: dict[str, Any], reason: str) -> None:
    assert action(**call)[:2] == ("quarantine", reason)


@pytest.mark.parametrize("name", CELERYS_OWN)
def test_celerys_own_tasks_do_not_come_by_the_queue(name: str) -> None:
    assert action(task=name)[:2] == ("quarantine", "a task of Celery's own")


def test_only_an_unknown_task_waits_for_a_worker_that_knows_it() -> None:
    """Five receives and their waits still end in the dead-letter queue within a minute."""
    assert 0 < action(task="nobody")[2] * 5 <= 50
    assert action(args=[])[2] == 0


@pytest.mark.parametrize(("seconds", "wait"), [(0.2, 1), (60, 60), (43_200, 43_200)])
def test_a_call_for_later_goes_back_until_then(seconds: float, wait: float) -> None:
    assert action(eta=NOW + timedelta(seconds=seconds)) == ("postpone", "eta", wait)
