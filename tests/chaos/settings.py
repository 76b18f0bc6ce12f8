"""The project's settings with its times made shorter; they obey the same rules."""

from dataclasses import replace

from skincare.settings import *  # noqa: F403
from skincare.settings import SQS_POLICY as _SQS_POLICY

SQS_POLICY = replace(
    _SQS_POLICY,
    visibility_timeout=22,
    soft_time_limit=8,
    hard_time_limit=10,
    stop_timeout=30,
    long_poll=2,
    backoff=(2, 5, 10, 20),
    connect_timeout=1,
    read_timeout=2,
    poll_timeout_margin=3,
    watchdog_margin=4,
)
CLAIM_LEASE_SECONDS = 16
EMAIL_TIMEOUT = 2  # seconds
PUT_OFF_SECONDS = (1.0, 20.0)
RELAY_SWEEP_SECONDS = 1.0
RELAY_BACKOFF_SECONDS = (0.2, 2.0)
DATABASES["default"]["OPTIONS"]["connect_timeout"] = 2  # noqa: F405
