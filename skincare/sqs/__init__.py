"""A Celery transport for Amazon SQS that never goes deaf and never loses a message.

`configure(app, policy=SQSPolicy(...), queues={...}, ...)` is all that an application calls. The
names below are imported when they are first used, so that `python -m skincare.sqs.health` starts
in a few milliseconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skincare.sqs.application import configure as configure
    from skincare.sqs.decoder import AdaptedCall as AdaptedCall
    from skincare.sqs.outcome import RetryLater as RetryLater
    from skincare.sqs.outcome import Terminal as Terminal
    from skincare.sqs.outcome import Unavailable as Unavailable
    from skincare.sqs.policy import Observer as Observer
    from skincare.sqs.policy import SQSPolicy as SQSPolicy
    from skincare.sqs.task import Task as Task

_HOMES = {
    "AdaptedCall": "decoder",
    "configure": "application",
    "Observer": "policy",
    "RetryLater": "outcome",
    "SQSPolicy": "policy",
    "Task": "task",
    "Terminal": "outcome",
    "Unavailable": "outcome",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
