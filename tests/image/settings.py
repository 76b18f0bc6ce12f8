"""Numbers short enough to wait for, and long enough to kill a container in the middle of a task."""

from dataclasses import replace

from tests.acceptance.settings import *  # noqa: F403

SQS_POLICY = replace(
    SQS_POLICY,  # noqa: F405
    visibility_timeout=25,
    soft_time_limit=9,
    hard_time_limit=10,
    stop_timeout=30,
    long_poll=5,
)
CLAIM_LEASE_SECONDS = 15
