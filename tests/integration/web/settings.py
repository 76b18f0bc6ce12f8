"""The API's settings where its deadlines are waited for."""

import os

from tests.settings import *  # noqa: F403

WEB_READ_SECONDS = 2
WEB_QUEUE_SECONDS = 1
if os.environ.get("PATIENT"):
    WEB_READ_SECONDS = 60
    DATABASE_TIMEOUTS = {**DATABASE_TIMEOUTS, "api": (300, 600)}  # noqa: F405
