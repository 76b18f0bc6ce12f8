"""The API's settings where it is attacked: the gateways are simulated, and addresses are played."""

from tests.settings import *  # noqa: F403

TRUSTED_PROXY_COUNT = 1  # whoever attacks says whose address it is
