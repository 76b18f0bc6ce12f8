"""The shop's settings, with routes whose checkout does everything itself."""

from skincare.settings import *  # noqa: F403

ROOT_URLCONF = "tests.bench.inline.urls"
RELAY_IN_PROCESS = False
