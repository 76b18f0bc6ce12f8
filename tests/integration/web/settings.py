"""The API's settings where its deadlines are waited for."""

from tests.settings import *  # noqa: F403

WEB_READ_SECONDS = 2
WEB_QUEUE_SECONDS = 1
