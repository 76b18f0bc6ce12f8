"""Which calls start, wait, or never will."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from skincare.sqs import SQSPolicy
from skincare.sqs.admission import START, admit
from skincare.sqs.envelope import TaskCall

NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


def registered(header: Callable[..., object]) -> Any:
    """A task as Celery keeps it: with the signature of its function."""
    return SimpleNamespace(typing=True, __header__=header)


TASKS = {
    "mail": registered(lambda to, *, copy=False: None),
    "any": SimpleNamespace(typing=False, __header__=None),
}


def verdict(**call: Any) -> tuple[str, str, float]:
    fields = {"task": "mail", "task_id": "1", "args": ["x"], "kwargs": {}, **call}
    admission = admit(TaskCall(**fields), tasks=TASKS, policy=SQSPolicy(), now=NOW)
    return admission.verdict, admission.reason, admission.delay


def test_a_call_in_order_starts() -> None:
    assert verdict() == (START.verdict, "", 0)
    assert verdict(kwargs={"copy": True}, expires=NOW + timedelta(seconds=1))[0] == "start"
    assert verdict(task="any", args=[1, 2, 3])[0] == "start"
    assert verdict(eta=NOW)[0] == "start"
    assert verdict(hard_time_limit=90, soft_time_limit=75)[0] == "start"


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
    assert verdict(**call)[:2] == ("quarantine", reason)


def test_only_an_unknown_task_waits_for_a_worker_that_knows_it() -> None:
    """Five receives and their waits still end in the dead-letter queue within a minute."""
    assert 0 < verdict(task="nobody")[2] * 5 <= 50
    assert verdict(args=[])[2] == 0


@pytest.mark.parametrize(("seconds", "wait"), [(0.2, 1), (60, 60), (43_200, 43_200)])
def test_a_call_for_later_goes_back_until_then(seconds: float, wait: float) -> None:
    assert verdict(eta=NOW + timedelta(seconds=seconds)) == ("postpone", "eta", wait)
