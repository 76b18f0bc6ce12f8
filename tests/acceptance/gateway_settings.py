"""The acceptance tests' settings, where gateways are there to be asked."""

from tests.acceptance.settings import *  # noqa: F403

PROVIDERS_ASKED = ["midtrans", "xendit"]
GATEWAY_ASKS_PER_MINUTE = 300
