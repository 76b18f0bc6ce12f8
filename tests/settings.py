"""The project's settings as tests run them: same numbers, and nothing that leaves the machine."""

import os

os.environ["APP_ENV"] = "test"
os.environ["ENV_FILE"] = ""  # a developer's own settings are not what is tested
os.environ.setdefault("EMAIL_URL", "memorymail://")

from skincare.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
RELAY_IN_PROCESS = False  # tests that want the relay start it
WHITENOISE_AUTOREFRESH = True  # no folder of collected static files is expected
PROVIDERS_ASKED = []  # tests that have a gateway to ask turn it on
LIMIT_BUYERS = False  # tests that want the bounds turn them on
