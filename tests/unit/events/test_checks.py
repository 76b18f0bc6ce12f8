"""The numbers that must agree, and the sentence where they do not."""

from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import run_checks

from skincare.events.checks import numbers_agree
from skincare.sqs.policy import SQSPolicy

POLICY = SQSPolicy()


def test_the_projects_numbers_agree() -> None:
    assert numbers_agree() == []
    assert run_checks() == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"CLAIM_LEASE_SECONDS": 90}, "CLAIM_LEASE_SECONDS (90) is not above the hard time limit"),
        ({"CLAIM_LEASE_SECONDS": 121}, "CLAIM_LEASE_SECONDS (121) is above the visibility timeout"),
        ({"RELAY_LEASE_SECONDS": 28}, "Half of RELAY_LEASE_SECONDS (28) is not above the 14 s"),
        ({"EMAIL_TIMEOUT": 25}, "3 tries of EMAIL_TIMEOUT (25 s)"),
        ({"EMAIL_RETRY_WAIT_SECONDS": (0.25,)}, "EMAIL_RETRY_WAIT_SECONDS needs one wait"),
        (
            {"SQS_POLICY": replace(POLICY, visibility_timeout=100)},
            "visibility_timeout (100 s) is not above hard_time_limit + 10 s",
        ),
        ({"PRUNE_PROCESSED_EVENTS_DAYS": 22}, "PRUNE_PROCESSED_EVENTS_DAYS (22) is not above 22"),
        ({"PRUNE_OUTBOX_DAYS": 91}, "PRUNE_OUTBOX_DAYS (91) is not 1 to"),
        ({"PRUNE_OUTBOX_DAYS": 0}, "PRUNE_OUTBOX_DAYS (0) is not 1 to"),
    ],
)
def test_numbers_that_contradict_each_other_are_named(
    changes: dict[str, Any], sentence: str, settings: Any
) -> None:
    for name, value in changes.items():
        setattr(settings, name, value)

    assert [error for error in numbers_agree() if error.msg.startswith(sentence)] != []


def test_the_settings_are_the_designs_numbers() -> None:
    policy = settings.SQS_POLICY

    assert (policy.soft_time_limit, policy.hard_time_limit) == (75, 90)
    assert (policy.visibility_timeout, settings.CLAIM_LEASE_SECONDS) == (120, 100)
    assert (policy.stop_timeout, policy.long_poll) == (120, 15)
    assert (policy.max_receive_count, policy.backoff) == (5, (10, 30, 60, 120))
    assert (policy.concurrency, policy.attempts) == (5, 2)
