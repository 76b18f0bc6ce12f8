"""An event loop of kombu's, run by the test itself."""

from collections.abc import Iterator

import pytest
from kombu.asynchronous import Hub


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()
    yield hub
    hub.close()
