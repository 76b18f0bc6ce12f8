"""An event loop of kombu's, run by the test itself, and longer waits on busy machines."""

from collections.abc import Iterator

import hypothesis
import pytest
from kombu.asynchronous import Hub

hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()
    yield hub
    hub.close()
