"""How long to wait before the next try of a call that failed: pure, in seconds."""

import random
from collections.abc import Callable

#: First and longest wait before another poll of a queue whose polls fail.
POLL_BACKOFF = (0.2, 20.0)
#: First and longest wait before a delete or a change of visibility is sent again.
ACKNOWLEDGE_BACKOFF = (0.2, 5.0)

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
