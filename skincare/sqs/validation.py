"""Whether a task call may start now: a decision without a queue."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from skincare.sqs.decoder import TaskCall
from skincare.sqs.policy import MAX_VISIBILITY_TIMEOUT, SQSPolicy

#: Seconds before a message for an unknown task is shown to the other workers again: while a deploy
#: is under way, one of them may know it. Never longer than the first backoff of a failed task.
UNKNOWN_TASK_DELAY = 8.0


#: How the names of the tasks begin that every Celery application has.
CELERYS_TASKS = "celery."


@dataclass(frozen=True)
class Verdict:
    """What to do with the call, and for `postpone` and `quarantine` why, and for how long the
    message stays invisible (seconds)."""

    action: Literal["start", "postpone", "quarantine"]
    reason: str = ""
    delay: float = 0.0


START = Verdict("start")


def validate(
    call: TaskCall, *, tasks: Mapping[str, Any], policy: SQSPolicy, now: datetime
) -> Verdict:
    """Decide over a call that is well formed.

    An `eta` is not waited for in memory, where the visibility would run out: the message goes back
    invisible until then. That costs one of its receives.
    """
    task = tasks.get(call.task)
    if task is not None and call.task.startswith(CELERYS_TASKS):
        # celery.chunks, celery.map and others would send or run any number of other tasks.
        return Verdict("quarantine", "a task of Celery's own")
    if task is None:
        delay = min((UNKNOWN_TASK_DELAY, *policy.backoff[:1]))
        return Verdict("quarantine", "the task is unknown", delay)
    if not _arguments_fit(task, call):
        return Verdict("quarantine", "the arguments do not fit the task")
    problem = call_problem(call, policy=policy, now=now)
    if problem:
        return Verdict("quarantine", problem)
    if call.eta is not None and call.eta > now:
        return Verdict("postpone", "eta", max((call.eta - now).total_seconds(), 1.0))
    return START


def call_problem(call: TaskCall, *, policy: SQSPolicy, now: datetime) -> str:
    """Return why no worker of this policy could run the call, "" where it could."""
    if (call.hard_time_limit or 0) > policy.hard_time_limit:
        return "the time limit is longer than the worker's"
    if (call.soft_time_limit or 0) > policy.hard_time_limit:
        return "the soft time limit is longer than the worker's"
    if call.expires is not None and call.expires <= now:
        return "expired"
    if call.eta is not None and (call.eta - now).total_seconds() > MAX_VISIBILITY_TIMEOUT:
        return f"eta is more than {MAX_VISIBILITY_TIMEOUT} s away"
    return ""


def _arguments_fit(task: Any, call: TaskCall) -> bool:
    check = getattr(task, "__header__", None)  # Celery's copy of the signature, without the body
    if not getattr(task, "typing", False) or check is None:
        return True
    try:
        check(*call.args, **call.kwargs)
    except TypeError:
        return False
    return True
