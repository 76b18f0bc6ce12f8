"""Settings of `collectstatic` while the image is built: production's files, none of its secrets.

Not in the image that runs.
"""

import os

os.environ["APP_ENV"] = "development"  # where every required variable has a default

from skincare.settings import *  # noqa: F403
from skincare.settings import COLLECTED_STATIC_FILES, STORAGES

STORAGES = {**STORAGES, "staticfiles": {"BACKEND": COLLECTED_STATIC_FILES}}
WHITENOISE_KEEP_ONLY_HASHED_FILES = True  # pages name no others
