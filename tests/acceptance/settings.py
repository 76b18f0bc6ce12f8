"""The worker's settings in acceptance tests: short numbers, and points where a test breaks it."""

from skincare.sqs.policy import SQSPolicy
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.acceptance.faultpoints"]  # noqa: F405

SQS_POLICY = SQSPolicy(
    visibility_timeout=14,
    soft_time_limit=2,
    hard_time_limit=3,
    stop_timeout=20,
    long_poll=1,
    backoff=(0, 0, 0, 0),
    outage_backoff=(0.2, 1.0),
    concurrency=4,
    health_file=SQS_POLICY.health_file,  # noqa: F405
)
CLAIM_LEASE_SECONDS = 5
RELAY_IN_PROCESS = True
RELAY_SWEEP_SECONDS = 0.5
RELAY_BACKOFF_SECONDS = (0.1, 1.0)
EMAIL_TIMEOUT = 0.4
PUT_OFF_SECONDS = (0.5, 4.0)
