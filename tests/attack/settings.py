"""The API's settings where it is attacked: addresses are played, and bounds hold if told so."""

import os

from tests.settings import *  # noqa: F403

TRUSTED_PROXY_COUNT = 1  # whoever attacks says whose address it is
LIMIT_BUYERS = os.environ.get("LIMIT_BUYERS") == "true"
