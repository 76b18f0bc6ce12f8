"""How long to wait: pure decisions, in seconds."""

import random
from collections.abc import Callable

from skincare.sqs.outcome import RetryLater, Terminal
from skincare.sqs.policy import MAX_VISIBILITY_TIMEOUT, SQSPolicy

#: First and longest wait before another poll of a queue whose polls fail.
POLL_BACKOFF = (0.2, 20.0)
#: First and longest wait before a delete or a change of visibility is sent again.
SETTLE_BACKOFF = (0.2, 5.0)

#: Returns a number between its two arguments; `random.uniform` outside of tests.
Uniform = Callable[[float, float], float]


def full_jitter(
    failures: int, backoff: tuple[float, float], uniform: Uniform = random.uniform
) -> float:
    """Return the wait after the n-th failure in a row: at random up to a ceiling that doubles.

    The lower bound is the backoff's first step, so that no failure is followed at once by another.
    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    """
    first, longest = backoff
    ceiling = min(longest, first * 2.0 ** min(failures, 32))
    return uniform(first, ceiling)


def release_delay(
    error: BaseException | None,
    *,
    receive_count: int,
    policy: SQSPolicy,
    uniform: Uniform = random.uniform,
) -> float:
    """Return how long the message of a task that ended with `error` shall stay invisible.

    A terminal error, and the last receive that the queue allows, end in the DLQ at the next
    receive: nothing is gained by waiting for it.
    """
    if isinstance(error, Terminal):
        return 0.0
    if isinstance(error, RetryLater) and error.after is not None:
        return within_limits(error.after)
    if receive_count >= policy.max_receive_count or not policy.backoff:
        return 0.0
    step = policy.backoff[min(max(receive_count, 1), len(policy.backoff)) - 1]
    return within_limits(uniform(1 - policy.backoff_jitter, 1 + policy.backoff_jitter) * step)


def within_limits(seconds: float) -> float:
    """Return the nearest visibility timeout that SQS takes; NaN counts as 0."""
    return min(seconds, MAX_VISIBILITY_TIMEOUT) if seconds > 0 else 0.0
