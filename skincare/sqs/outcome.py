"""What a task raises to say what becomes of its message, and for how long that stays invisible.

Any other exception keeps the message too: it is visible again after the backoff of the policy.
"""

import random

from skincare.sqs.backoff import Uniform
from skincare.sqs.policy import MAX_VISIBILITY_TIMEOUT, SQSPolicy


class RetryLater(Exception):
    """The message is kept and becomes visible again after `after` seconds.

    None means the policy's backoff for the message's receive count. Each try costs a receive.
    """

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason, after)  # both, so that it survives the way out of the process
        self.reason = reason
        self.after = after

    def __str__(self) -> str:
        return self.reason


class Terminal(Exception):
    """The message can never be processed: it is visible at once until it is in the DLQ."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unavailable(Exception):
    """What the task needs is away, and nothing was done for the message.

    The message stays with this worker and is tried again in place, until a task succeeds; meanwhile
    its queue is not polled. That costs no receive, however long it takes, up to the 12 hours for
    which SQS lets a message be held.

    `what` names it for the operators, such as "PostgreSQL". The next try finds `resumes` as
    `self.request.resumes`: a number by which it knows what this try had begun.
    """

    def __init__(self, what: str, resumes: int | None = None) -> None:
        super().__init__(what, resumes)
        self.what = what
        self.resumes = resumes

    def __str__(self) -> str:
        return f"{self.what} is unavailable"


#: What a task raises on purpose, as opposed to by mistake.
OUTCOMES = (RetryLater, Terminal, Unavailable)


class TaskFailed(Exception):
    """A task raised an error of this name; its class may not exist in the main process."""


def release_delay(
    error: BaseException | None,
    *,
    receive_count: int,
    policy: SQSPolicy,
    uniform: Uniform = random.uniform,
) -> float:
    """Return how long the message of a task that ended with `error` stays invisible.

    A terminal error, and the last receive that the queue allows, end in the DLQ at the next
    receive: nothing is gained by waiting for it.
    """
    if isinstance(error, Terminal):
        return 0.0
    if isinstance(error, RetryLater) and error.after is not None:
        return within_limits(error.after)
    if receive_count >= policy.max_receive_count:
        return 0.0
    step = policy.backoff[min(max(receive_count, 1), len(policy.backoff)) - 1]
    return within_limits(uniform(1 - policy.backoff_jitter, 1 + policy.backoff_jitter) * step)


def longest_backoff(policy: SQSPolicy, uniform: Uniform = random.uniform) -> float:
    """Return how long a message stays invisible that was received more often than it should be.

    The queue's redrive policy was removed, or its count raised: without a wait it would come back
    dozens of times a second.
    """
    jitter = uniform(1 - policy.backoff_jitter, 1 + policy.backoff_jitter)
    return within_limits(jitter * max(policy.backoff))


def within_limits(seconds: float) -> float:
    """Return the nearest visibility timeout that SQS takes; NaN counts as 0."""
    return min(seconds, MAX_VISIBILITY_TIMEOUT) if seconds > 0 else 0.0
