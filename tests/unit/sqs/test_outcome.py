"""Outcomes travel from the task's process to the worker's."""

import pickle

from skincare.sqs import RetryLater, Terminal


def test_outcomes_survive_the_way_between_processes() -> None:
    later = pickle.loads(pickle.dumps(RetryLater("busy", after=7.5)))  # noqa: S301
    never = pickle.loads(pickle.dumps(Terminal("no such order")))  # noqa: S301

    assert (later.reason, later.after, str(later)) == ("busy", 7.5, "busy")
    assert (never.reason, str(never)) == ("no such order", "no such order")
