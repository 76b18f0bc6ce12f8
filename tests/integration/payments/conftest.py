"""The gateways' simulators, as the shop of a test asks them."""

from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from skincare.local.gateways.simulator import Simulator
from tests.integration.gateways.conftest import SECRET_KEY, SERVER_KEY


@pytest.fixture
def gateways(settings: LazySettings) -> Iterator[Simulator]:
    """Both simulators, asked by the shop; their webhooks are lost: a test sends what it wants."""
    settings.PROVIDERS_ASKED = ["midtrans", "xendit"]
    settings.GATEWAY_ASKS_PER_MINUTE = 6000
    with Simulator(
        midtrans_server_key=SERVER_KEY,
        xendit_secret_key=SECRET_KEY,
        xendit_callback_token=settings.XENDIT_CALLBACK_TOKEN,
    ) as simulator:
        settings.MIDTRANS_SERVER_KEY = SERVER_KEY
        settings.MIDTRANS_SNAP_URL = simulator.midtrans_snap_url
        settings.MIDTRANS_API_URL = simulator.midtrans_api_url
        settings.XENDIT_SECRET_KEY = SECRET_KEY
        settings.XENDIT_API_URL = simulator.xendit_api_url
        yield simulator
